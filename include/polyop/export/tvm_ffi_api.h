// tvm-ffi's C interface, version 0.1 (tvm/ffi/c_api.h): the parts that are used. csrc/tvm_ffi.cc calls such
// functions, tvm_ffi.h is called as one.
#ifndef POLYOP_EXPORT_TVM_FFI_API_H
#define POLYOP_EXPORT_TVM_FFI_API_H

#include <cstddef>
#include <cstdint>

#include "polyop/export/dlpack.h"

namespace polyop::tvm_ffi {

enum Type : int32_t {
  kNone = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kTensorPointer = 7,
  kText = 8,
  kSmallText = 11,  // at most 7 bytes, in the value itself
  kTextObject = 65,
  kShape = 69,
  kTensor = 70,
  kArray = 71,
  kList = 75,
};
constexpr int32_t kFirstObject = 64;  // a value of this type, or of a higher one, is a counted object

struct Any {
  int32_t type;
  uint32_t small_size;  // of a kSmallText, else 0
  union {
    int64_t integer;
    double number;
    const char* text;
    void* pointer;
    char small_text[8];
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
struct TextObject {
  Object header;
  Bytes text;
};
struct TensorObject {
  Object header;
  dlpack::Tensor tensor;
};
struct ShapeObject {
  Object header;
  const int64_t* sizes;
  size_t count;
};
struct SequenceObject {  // an array or a list
  Object header;
  const Any* items;
  int64_t count;
};
struct ErrorObject {
  Object header;
  Bytes kind, message, backtrace;  // the backtrace has the most recent call first
};
static_assert(sizeof(Any) == 16 && sizeof(Object) == 24 && sizeof(ErrorObject) == 72);

}  // namespace polyop::tvm_ffi

#endif
