// XLA's C interface for custom calls, version 0.3: the parts that are used. csrc/hosts/xla.cc and xla.h are
// handlers that XLA calls; csrc/hosts/xla_kernel.cc calls handlers as XLA does. They are declared here so
// that building needs no file of jaxlib. Structs begin with their size and only grow at the end. Source: the
// interface that jaxlib documents in xla/ffi/api/c_api.h.
#ifndef POLYOP_EXPORT_XLA_API_H
#define POLYOP_EXPORT_XLA_API_H

#include <cstddef>
#include <cstdint>

namespace polyop::xla {

constexpr int kMajor = 0, kMinor = 3;

struct Header {  // the beginning of every struct
  size_t size;
  void* extensions;
};

struct Extension {
  size_t size;
  int kind;  // kMetadata
  Extension* next;
};
constexpr int kMetadata = 1;

struct Version {
  Header header;
  int major, minor;
};

struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
  int64_t state_type;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;

struct Span {
  const char* data;
  size_t size;
};

struct CreateError {
  Header header;
  const char* message;
  int code;
};
constexpr int kResourceExhausted = 8, kUnimplemented = 12, kInternal = 13;

struct GetMessage {
  Header header;
  Error* error;
  const char* message;  // out
};

struct GetStream {
  Header header;
  void* context;
  void* stream;  // out
};

struct Allocate {
  Header header;
  void* context;
  size_t bytes, alignment;
  void* data;  // out
};

struct Free {
  Header header;
  void* context;
  size_t bytes;
  void* data;
};

struct GetOrdinal {
  Header header;
  void* context;
  int32_t ordinal;  // out
};

struct DestroyError {
  Header header;
  Error* error;
};

struct Schedule {
  Header header;
  void* context;
  void (*task)(void* data);
  void* data;
};

struct CountThreads {
  Header header;
  void* context;
  int64_t* count;  // out
};

using Entry = Error* (*)(void* arguments);  // one that polyop neither calls nor serves

struct Api {
  Header header;
  Version version;
  void* internal;  // of handlers inside XLA
  Error* (*create_error)(CreateError*);
  void (*get_message)(GetMessage*);
  void (*destroy_error)(DestroyError*);
  Entry register_handler;
  Error* (*get_stream)(GetStream*);
  Entry register_type, get_context, set_state, get_state;
  Error* (*allocate)(Allocate*);
  Error* (*free)(Free*);
  Error* (*schedule)(Schedule*);
  Error* (*count_threads)(CountThreads*);
  Entry create_future, set_available, set_error, get_run;
  Error* (*get_ordinal)(GetOrdinal*);
};

struct Buffer {
  Header header;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* shape;
};

struct Buffers {  // arguments or results
  Header header;
  int64_t count;
  int* kinds;  // kBuffer
  Buffer** items;
};
constexpr int kBuffer = 1;

struct Scalar {
  int dtype;
  void* value;
};

struct Array {
  int dtype;
  size_t count;
  void* data;
};

struct Attributes {  // sorted by name
  Header header;
  int64_t count;
  int* kinds;
  Span** names;
  void** values;  // an Array*, a Scalar* or a Span*, as its kind says
};
constexpr int kArray = 1, kScalar = 3, kText = 4;

struct Frame {
  Header header;  // `size` is kFrameSize: handlers compare it
  const Api* api;
  void* context;
  int stage;  // kExecute
  Buffers arguments, results;
  Attributes attributes;
  void* future;
};
constexpr size_t kFrameSize = offsetof(Frame, attributes) + sizeof(Attributes);
constexpr int kExecute = 3;

using HandlerFunction = Error* (*)(Frame*);

}  // namespace polyop::xla

#endif
