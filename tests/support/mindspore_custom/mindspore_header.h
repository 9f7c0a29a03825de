// What MindSpore's documents tell to copy beside a source: the layout of the class that MindSpore passes. polyop's own
// header has the same names. Programs are compiled with this one for MindSpore's own Custom.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

class AotKernelData {
 public:
  virtual ~AotKernelData() = default;
};

class AotExtra {
 public:
  virtual ~AotExtra() = default;
  virtual bool HasAttr(std::string name) = 0;
  template <typename T>
  T Attr(std::string name);
  void SetWorkSpace(const std::vector<size_t> &bytes) { workspace_ = bytes; }
  const std::vector<size_t> &WorkSpace() const { return workspace_; }
  void SetKernelData(AotKernelData *data) { data_ = data; }
  const AotKernelData *KernelData() const { return data_; }

 private:
  virtual bool Bool(std::string) = 0;
  virtual int64_t Int(std::string) = 0;
  virtual float Float(std::string) = 0;
  virtual std::string Str(std::string) = 0;
  virtual std::vector<int64_t> Ints(std::string) = 0;
  virtual std::vector<float> Floats(std::string) = 0;
  virtual std::vector<std::vector<int64_t>> IntRows(std::string) = 0;
  virtual std::vector<std::vector<float>> FloatRows(std::string) = 0;
  std::vector<size_t> workspace_;
  AotKernelData *data_{nullptr};
};

#define GETTER(type, method) \
  template <>                \
  inline type AotExtra::Attr<type>(std::string name) { return method(name); }
GETTER(bool, Bool)
GETTER(int64_t, Int)
GETTER(float, Float)
GETTER(std::string, Str)
GETTER(std::vector<int64_t>, Ints)
GETTER(std::vector<float>, Floats)
GETTER(std::vector<std::vector<int64_t>>, IntRows)
GETTER(std::vector<std::vector<float>>, FloatRows)
