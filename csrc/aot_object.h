// The object that kernels built with MindSpore's custom_aot_extra.h get as `extra`.
//
// A kernel built with polyop's header of that name gets a C struct. One built with MindSpore's gets an object
// with virtual functions, which take and return std::string. libstdc++ has two of those, and the kernel's own
// symbols tell which one it was compiled with: binary/diagnose.py reads them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "polyop/abi.h"

namespace polyop {

enum class Strings { kNone, kOld, kNew };  // kNone: the kernel gets the C struct

// It owns what the kernel stores in the object. No std::string is in this class: both ABIs share it.
class AotObject {
 public:
  AotObject() = default;
  AotObject(const AotObject&) = delete;
  AotObject& operator=(const AotObject&) = delete;
  virtual ~AotObject() = default;
  virtual void* pointer() = 0;  // what the kernel gets
  virtual const std::vector<size_t>& workspaces() const = 0;
  virtual bool has_data() const = 0;
};

// The attributes are those of `contract`, which must outlive the object.
std::unique_ptr<AotObject> aot_object_with_old_strings(polyop_extra* contract);
std::unique_ptr<AotObject> aot_object_with_new_strings(polyop_extra* contract);

}  // namespace polyop
