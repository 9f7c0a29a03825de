// Functions of tvm-ffi as kernels. The structs are declared from its C interface, version 0.1
// (tvm/ffi/c_api.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hosts/dlpack.h"
#include "launch.h"

namespace polyop::tvm_ffi {

enum Type : int32_t { kNone = 0, kInt = 1, kBool = 2, kFloat = 3, kTensorPointer = 7, kText = 8 };
constexpr int32_t kFirstObject = 64;  // a value of this type, or of a higher one, is a counted object

struct Any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    double number;
    const char* text;
    void* pointer;
  };
};
using SafeCall = int (*)(void* handle, const Any* arguments, int32_t count, Any* result);

// What every object begins with.
struct Object {
  uint64_t references;
  int32_t type;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
};
struct FunctionObject {
  Object header;
  SafeCall call;
};
struct Bytes {
  const char* data;
  size_t size;
};
struct ErrorObject {
  Object header;
  Bytes kind, message, backtrace;  // the backtrace has the most recent call first
};
static_assert(sizeof(Any) == 16 && sizeof(Object) == 24 && sizeof(ErrorObject) == 72);

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
