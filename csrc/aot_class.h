// The classes by which MindSpore's header custom_aot_extra.h meets an aot kernel. The order of the virtual
// functions and of the fields is MindSpore's contract.
//
// They have std::string in them, of which libstdc++ has two. So they stand in a namespace for one of them,
// POLYOP_STRINGS, which the file that includes this defines: CMakeLists.txt compiles that file with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace polyop::POLYOP_STRINGS {

class KernelData {
 public:
  virtual ~KernelData() = default;
};

class MindSporeExtra {
 public:
  virtual ~MindSporeExtra() = default;
  virtual bool HasAttr(std::string name) = 0;
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(std::string name) = 0;
  virtual std::vector<float> GetAttrFloatVec(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) = 0;
  std::vector<size_t> workspaces;
  KernelData* data = nullptr;  // deleted with the kernel
};

}  // namespace polyop::POLYOP_STRINGS
