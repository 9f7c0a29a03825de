// DLPack's structs, declared from its specification (version 1.3): the exchange table that a
// framework publishes on its tensor type as __dlpack_c_exchange_api__.
#ifndef POLYOP_EXPORT_DLPACK_H
#define POLYOP_EXPORT_DLPACK_H

#include <cstdint>

namespace polyop::dlpack {

struct Version {
  uint32_t major, minor;
};
struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct ManagedTensor {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensor*);
  uint64_t flags;
  Tensor tensor;
};

using Allocator = int (*)(Tensor* prototype, ManagedTensor** out, void* error_ctx,
                          void (*set_error)(void*, const char* kind, const char* message));
struct ExchangeHeader {
  Version version;
  ExchangeHeader* previous;
};
struct Exchange {
  ExchangeHeader header;
  Allocator allocate;
  int (*from_object)(void* object, ManagedTensor** out);
  int (*to_object)(ManagedTensor* tensor, void** out);
  int (*borrow)(void* object, Tensor* out);  // may be null
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 80 && sizeof(Exchange) == 56);

}  // namespace polyop::dlpack

#endif
