// XLA's C interface for custom calls, version 0.3: the parts that are used. They are declared here so that
// building needs no file of jaxlib. Structs begin with their size and only grow at the end. Source: the
// interface that jaxlib documents in xla/ffi/api/c_api.h.
#pragma once

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
constexpr int kInternal = 13;

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

using Unused = void*;

struct Api {
  Header header;
  Version version;
  Unused internal;
  Error* (*create_error)(CreateError*);
  Unused get_message;
  void (*destroy_error)(DestroyError*);
  Unused register_handler;
  Error* (*get_stream)(GetStream*);
  Unused register_type, get_context, set_state, get_state;
  Error* (*allocate)(Allocate*);
  Error* (*free)(Free*);
  Unused schedule, thread_count, create_future, set_available, set_error, get_run;
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
  int* kinds;
  Buffer** items;
};

struct Attributes {
  Header header;
  int64_t count;
  int* kinds;
  Span** names;
  void** values;  // a Span* for kText
};
constexpr int kText = 4;

struct Frame {
  Header header;
  const Api* api;
  void* context;
  int stage;
  Buffers arguments, results;
  Attributes attributes;
  void* future;
};

}  // namespace polyop::xla
