#include "xla_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "polyop/export/xla_api.h"
#include "xla.h"

namespace polyop {

namespace {

using namespace xla;

// What a call passes to the handler as its context.
struct Context {
  bool cuda;
  void* stream;
};

// What an Error* of the table below points to.
struct HandlerError {
  std::string text;
  int code;
};

HandlerError* own(Error* error) { return reinterpret_cast<HandlerError*>(error); }

Error* fail(const std::string& text, int code) {
  return reinterpret_cast<Error*>(new HandlerError{text, code});
}

Error* unserved(const char* entry, const char* way_out) {
  return fail(std::string("polyop does not serve ") + entry + way_out, kUnimplemented);
}

constexpr const char* kOnlyInXla = ", which only XLA's runtime has";

// A function for each entry of the table that is not served: its error names the entry.
#define POLYOP_UNSERVED(function, entry) \
  Error* function(void*) { return unserved(entry, kOnlyInXla); }
POLYOP_UNSERVED(register_handler, "XLA_FFI_Handler_Register")
POLYOP_UNSERVED(register_type, "XLA_FFI_Type_Register")
POLYOP_UNSERVED(get_context, "XLA_FFI_ExecutionContext_Get")
POLYOP_UNSERVED(set_state, "XLA_FFI_State_Set")
POLYOP_UNSERVED(get_state, "XLA_FFI_State_Get")
POLYOP_UNSERVED(create_future, "XLA_FFI_Future_Create")
POLYOP_UNSERVED(set_available, "XLA_FFI_Future_SetAvailable")
POLYOP_UNSERVED(set_future_error, "XLA_FFI_Future_SetError")
POLYOP_UNSERVED(get_run, "XLA_FFI_RunId_Get")
#undef POLYOP_UNSERVED

Error* create_error(CreateError* args) { return fail(args->message, args->code); }
void get_message(GetMessage* args) { args->message = own(args->error)->text.c_str(); }
void destroy_error(DestroyError* args) { delete own(args->error); }

Error* get_stream(GetStream* args) {
  const auto* context = static_cast<const Context*>(args->context);
  if (!context->cuda) return unserved("XLA_FFI_Stream_Get", " on the CPU, which has no streams");
  args->stream = context->stream;
  return nullptr;
}

Error* allocate(Allocate* args) {
  if (static_cast<const Context*>(args->context)->cuda) {
    return unserved("XLA_FFI_DeviceMemory_Allocate", " on GPUs; on the CPU it does");
  }
  const size_t alignment = std::max<size_t>(args->alignment, 64);
  if (posix_memalign(&args->data, alignment, std::max<size_t>(args->bytes, 1)) != 0) {
    return fail("no " + std::to_string(args->bytes) + " bytes of scratch memory", kResourceExhausted);
  }
  return nullptr;
}

Error* free_memory(Free* args) {
  std::free(args->data);
  return nullptr;
}

Error* schedule(Schedule* args) {  // the interface allows a task to run in the thread that schedules it
  args->task(args->data);
  return nullptr;
}

Error* count_threads(CountThreads* args) {
  *args->count = 1;
  return nullptr;
}

Error* get_ordinal(GetOrdinal* args) {
  if (static_cast<const Context*>(args->context)->cuda) {
    return unserved("XLA_FFI_DeviceOrdinal_Get", " on GPUs; on the CPU it does");
  }
  args->ordinal = 0;
  return nullptr;
}

constexpr Api kApi = {
    {sizeof(Api), nullptr},
    {{sizeof(Version), nullptr}, kMajor, kMinor},
    nullptr,
    create_error,
    get_message,
    destroy_error,
    register_handler,
    get_stream,
    register_type,
    get_context,
    set_state,
    get_state,
    allocate,
    free_memory,
    schedule,
    count_threads,
    create_future,
    set_available,
    set_future_error,
    get_run,
    get_ordinal,
};

constexpr const char* kCodes[] = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

// Destroys an error and returns its code and text, as XLA prints them.
std::string take(Error* error) {
  const HandlerError problem = *own(error);
  delete own(error);
  const auto code = static_cast<size_t>(problem.code);
  const char* name = code < std::size(kCodes) ? kCodes[code] : kCodes[2];
  return std::string(name) + ": " + problem.text;
}

// The attributes of a launch, in the arrays that a frame points into.
struct AttributeTable {
  struct Row {
    std::vector<uint64_t> data;  // aligned for every dtype
    Span name, text;
    Scalar scalar;
    Array array;
  };
  std::vector<XlaAttribute> given;
  std::vector<Row> rows;
  std::vector<int> kinds;
  std::vector<Span*> names;
  std::vector<void*> values;

  explicit AttributeTable(std::vector<XlaAttribute> attributes) : given(std::move(attributes)) {
    std::sort(given.begin(), given.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    rows.resize(given.size());
    for (size_t i = 0; i < given.size(); ++i) add(given[i], rows[i]);
  }

  AttributeTable(const AttributeTable&) = delete;  // it points into itself
  AttributeTable& operator=(const AttributeTable&) = delete;

  void add(const XlaAttribute& from, Row& row) {
    row.name = {from.name.data(), from.name.size()};
    names.push_back(&row.name);
    if (from.dtype.empty()) {
      row.text = {from.bytes.data(), from.bytes.size()};
      kinds.push_back(kText);
      values.push_back(&row.text);
      return;
    }
    row.data.resize(from.bytes.size() / sizeof(uint64_t) + 1);
    std::memcpy(row.data.data(), from.bytes.data(), from.bytes.size());
    row.scalar = {xla_dtype(from.dtype), row.data.data()};
    row.array = {xla_dtype(from.dtype), from.count, row.data.data()};
    kinds.push_back(from.scalar ? kScalar : kArray);
    values.push_back(from.scalar ? static_cast<void*>(&row.scalar) : &row.array);
  }
};

// The kernel data of a launch.
struct Handler {
  HandlerFunction function;
  std::vector<int> dtypes;  // XLA's numbers of the inputs and outputs; kAbsent
  size_t inputs;
  bool cuda;
  AttributeTable attributes;
};
constexpr int kAbsent = 0;

Buffers buffers(Small<Buffer*, 16>& items, Small<int, 16>& kinds, size_t first, size_t count) {
  return {
      {sizeof(Buffers), nullptr}, static_cast<int64_t>(count), kinds.data() + first, items.data() + first};
}

// The kernel of every launch of a handler.
int call_handler(int nparam, void** params, int* ndims, int64_t** shapes, const char**, void* stream,
                 void* extra) {
  auto* contract = static_cast<polyop_extra*>(extra);
  auto& handler = *static_cast<Handler*>(contract->functions->kernel_data(contract));
  Small<Buffer, 16> tensors;
  Small<Buffer*, 16> items;
  Small<int, 16> kinds;
  size_t inputs = 0;
  for (size_t i = 0; i < static_cast<size_t>(nparam); ++i) {
    if (handler.dtypes[i] == kAbsent) continue;
    tensors.push({{sizeof(Buffer), nullptr}, handler.dtypes[i], params[i], ndims[i], shapes[i]});
    inputs += i < handler.inputs ? 1 : 0;
  }
  for (Buffer& tensor : tensors) {
    items.push(&tensor);
    kinds.push(kBuffer);
  }
  Context context{handler.cuda, stream};
  AttributeTable& attributes = handler.attributes;
  Frame frame{{kFrameSize, nullptr},
              &kApi,
              &context,
              kExecute,
              buffers(items, kinds, 0, inputs),
              buffers(items, kinds, inputs, tensors.size() - inputs),
              {{sizeof(Attributes), nullptr},
               static_cast<int64_t>(attributes.names.size()),
               attributes.kinds.data(),
               attributes.names.data(),
               attributes.values.data()},
              nullptr};
  Error* problem = handler.function(&frame);
  return problem == nullptr ? 0 : polyop_fail(extra, take(problem).c_str());
}

int need_dtype(const std::string& name) {
  const int number = xla_dtype(name);
  if (number < 0) throw std::runtime_error("XLA has no dtype " + name);
  return number;
}

}  // namespace

XlaMetadata xla_metadata(uintptr_t handler) {
  Metadata metadata{sizeof(Metadata), {{sizeof(Version), nullptr}, -1, -1}, 0, 0};
  MetadataExtension extension{{sizeof(MetadataExtension), kMetadata, nullptr}, &metadata};
  Context context{false, nullptr};
  Frame frame{};
  frame.header = {kFrameSize, &extension};
  frame.api = &kApi;
  frame.context = &context;
  frame.stage = kExecute;
  frame.arguments.header.size = frame.results.header.size = sizeof(Buffers);
  frame.attributes.header.size = sizeof(Attributes);
  if (Error* problem = reinterpret_cast<HandlerFunction>(handler)(&frame)) {
    throw std::runtime_error(take(problem));
  }
  return {metadata.version.major, metadata.version.minor, metadata.state_type != 0};
}

Launch make_xla_launch(uintptr_t handler, const std::vector<std::string>& tensors, size_t inputs,
                       std::vector<Output> outputs, std::vector<XlaAttribute> attributes, bool cuda,
                       const std::string& label) {
  std::vector<int> numbers;
  for (const std::string& name : tensors) numbers.push_back(name.empty() ? kAbsent : need_dtype(name));
  for (const XlaAttribute& attribute : attributes) {
    if (!attribute.dtype.empty()) need_dtype(attribute.dtype);
  }
  Launch launch;
  launch.label = label;
  launch.kernel = call_handler;
  launch.outputs = std::move(outputs);
  launch.extra = std::make_shared<Extra>(std::map<std::string, Attribute>());
  polyop_extra* contract = launch.extra->contract();
  auto* data = new Handler{reinterpret_cast<HandlerFunction>(handler), std::move(numbers), inputs, cuda,
                           AttributeTable(std::move(attributes))};
  contract->functions->set_kernel_data(contract, data,
                                       [](void* owned) { delete static_cast<Handler*>(owned); });
  return launch;
}

}  // namespace polyop
