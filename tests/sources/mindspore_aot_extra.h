// A class with the layout of MindSpore's AotExtra: the functions that a kernel calls, in its order. MindSpore's
// own header is used where it is installed (tests/hosts/mindspore/test_aot_header.py). MindSpore's documents tell to copy
// such a header beside a source; programs for MindSpore's own Custom are compiled with it.
#pragma once

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

  void SetWorkSpace(const std::vector<size_t>& sizes) { workspace_ = sizes; }
  const std::vector<size_t>& WorkSpace() const { return workspace_; }
  void SetKernelData(AotKernelData* data) { data_ = data; }
  const AotKernelData* KernelData() const { return data_; }
  void DestructKernelData() {
    delete data_;
    data_ = nullptr;
  }

 private:
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(std::string name) = 0;
  virtual std::vector<float> GetAttrFloatVec(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) = 0;

  std::vector<size_t> workspace_;
  AotKernelData* data_ = nullptr;
};

#define ATTR(type, function)                               \
  template <>                                              \
  inline type AotExtra::Attr<type>(std::string name) {     \
    return function(name);                                 \
  }
ATTR(bool, GetAttrBool)
ATTR(int64_t, GetAttrInt)
ATTR(float, GetAttrFloat)
ATTR(std::string, GetAttrStr)
ATTR(std::vector<int64_t>, GetAttrIntVec)
ATTR(std::vector<float>, GetAttrFloatVec)
ATTR(std::vector<std::vector<int64_t>>, GetAttrInt2DVec)
ATTR(std::vector<std::vector<float>>, GetAttrFloat2DVec)
