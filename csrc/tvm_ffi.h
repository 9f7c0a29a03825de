// Functions of tvm-ffi as kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launch.h"
#include "polyop/export/tvm_ffi_api.h"

namespace polyop::tvm_ffi {

// The functions of libtvm_ffi.so that a call needs.
struct Runtime {
  // Takes the handle of libtvm_ffi.so. Throws std::runtime_error if it lacks one of the functions.
  explicit Runtime(uintptr_t library);

  int (*keep)(void* object);
  int (*release)(void* object);
  void (*take_error)(void** error);
  int (*set_stream)(int32_t device, int32_t device_id, void* stream, void** previous);
};

// Which tensors and attributes a function gets: the inputs, the attributes, the outputs.
struct Signature {
  std::vector<int32_t> dtypes;  // of the inputs and outputs: rows of polyop::dtypes(), -1 for an absent one
  size_t inputs;
  std::vector<std::string> attributes;
};

// A function and its arguments for one set of specs and attributes; a call adds only the tensors.
class Function {
 public:
  // The function is a symbol, or an object (`symbol` is 0), which is kept alive. `extra` must outlive this.
  // Throws std::runtime_error for an attribute that has no form here: a list.
  Function(uintptr_t symbol, uintptr_t object, uintptr_t runtime, const Signature& signature, Extra* extra);
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  Outcome call(const Parameters& parameters, void* stream) const;

 private:
  struct Slot {  // where a tensor goes
    size_t position;
    dlpack::DataType dtype;
    bool is_absent;
  };
  void add_tensor(int32_t dtype);
  void add_attribute(const std::string& name, Extra* extra);
  Outcome failure() const;
  Outcome refuse(Any result) const;

  Runtime runtime_;
  void* object_;
  SafeCall call_;
  std::vector<Any> arguments_;
  std::vector<Slot> tensors_;
};

}  // namespace polyop::tvm_ffi
