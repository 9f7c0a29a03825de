#include "xla.h"

#include <cstring>
#include <new>
#include <string>

#include "../host_memory.h"
#include "../target.h"
#include "polyop/dtype_rows.h"
#include "polyop/export/xla_api.h"

namespace polyop {

namespace {

using namespace xla;

// The version that XLA is told: kMajor and kMinor, except in tests.
int reported_major = kMajor, reported_minor = kMinor;

constexpr size_t kMaxDtypes = 64;

// For each of XLA's numbers of dtypes, the row of dtypes() or -1.
const int32_t* row_table() {
  static const auto* table = [] {
    auto* rows = new int32_t[kMaxDtypes];
    for (size_t i = 0; i < kMaxDtypes; ++i) rows[i] = -1;
    for (int32_t i = 0; i < kDTypes; ++i) {
      if (kDTypeRows[i].xla >= 0) rows[kDTypeRows[i].xla] = i;
    }
    return rows;
  }();
  return table;
}

Error* make_error(const Frame& frame, const std::string& text) {
  CreateError args{{sizeof(CreateError), nullptr}, text.c_str(), kInternal};
  return frame.api->create_error(&args);
}

// Destroys an error that is not reported. Returns whether there was one. Whoever receives an error owns it.
bool discard(const Frame& frame, Error* problem) {
  if (problem == nullptr) return false;
  DestroyError args{{sizeof(DestroyError), nullptr}, problem};
  frame.api->destroy_error(&args);
  return true;
}

// Workspaces on the device, from XLA's allocator, which orders them with the stream.
struct DeviceMemory : Workspaces {
  const Frame& frame;
  struct Block {
    void* data;
    size_t bytes;
  };
  Small<Block, 4> blocks;
  explicit DeviceMemory(const Frame& owner) : frame(owner) {}
  void* allocate(size_t bytes) override {
    Allocate args{{sizeof(Allocate), nullptr}, frame.context, bytes, 256, nullptr};
    if (discard(frame, frame.api->allocate(&args))) return nullptr;
    blocks.push({args.data, bytes});
    return args.data;
  }
  ~DeviceMemory() override {
    for (const auto& [data, bytes] : blocks) {
      Free args{{sizeof(Free), nullptr}, frame.context, bytes, data};
      discard(frame, frame.api->free(&args));
    }
  }
};

bool add_views(const Buffers& buffers, int32_t device, int32_t device_id, Views* views) {
  for (int64_t i = 0; i < buffers.count; ++i) {
    const Buffer& buffer = *buffers.items[i];
    const auto xla_number = static_cast<size_t>(buffer.dtype);
    const int32_t row = xla_number < kMaxDtypes ? row_table()[xla_number] : -1;
    if (row < 0) return false;
    View view{};
    view.data = buffer.data;
    view.shape = buffer.shape;
    view.ndim = static_cast<int32_t>(buffer.rank);
    view.dtype = row;
    view.device = device;
    view.device_id = device_id;
    views->push(view);
  }
  return true;
}

constexpr int32_t kCuda = 2;  // DLPack's device type

// Makes the call that the attribute "call" names. Returns null, or an error for XLA.
Error* run_call(const Frame& frame, int32_t device) {
  const Span* text = nullptr;
  for (int64_t i = 0; i < frame.attributes.count; ++i) {
    const Span& name = *frame.attributes.names[i];
    if (name.size == 4 && std::memcmp(name.data, "call", 4) == 0 && frame.attributes.kinds[i] == kText) {
      text = static_cast<const Span*>(frame.attributes.values[i]);
    }
  }
  if (text == nullptr) return make_error(frame, "polyop: the custom call has no text 'call'");
  GetStream stream{{sizeof(GetStream), nullptr}, frame.context, nullptr};
  GetOrdinal ordinal{{sizeof(GetOrdinal), nullptr}, frame.context, 0};
  if (device == kCuda) {
    if (Error* problem = frame.api->get_stream(&stream)) return problem;
    if (Error* problem = frame.api->get_ordinal(&ordinal)) return problem;
  }
  Views tensors;
  if (!add_views(frame.arguments, device, ordinal.ordinal, &tensors) ||
      !add_views(frame.results, device, ordinal.ordinal, &tensors)) {
    return make_error(frame, "polyop: a tensor has a dtype that polyop does not know");
  }
  Target& target = Target::of({text->data, text->size});
  const auto inputs = static_cast<size_t>(frame.arguments.count);
  std::string problem;
  if (device == kCuda) {
    DeviceMemory workspaces(frame);
    problem = target.run(tensors, inputs, stream.stream, workspaces);
  } else {
    HostMemory workspaces;
    problem = target.run(tensors, inputs, nullptr, workspaces);
  }
  return problem.empty() ? nullptr : make_error(frame, problem);
}

Error* handle(Frame* frame, int32_t device) {
  auto* extension = static_cast<Extension*>(frame->header.extensions);
  if (extension != nullptr &&
      extension->kind == kMetadata) {  // XLA asks for the version, there is nothing to run
    Metadata& metadata = *reinterpret_cast<MetadataExtension*>(extension)->metadata;
    metadata.version.major = reported_major;
    metadata.version.minor = reported_minor;
    return nullptr;
  }
  try {
    return run_call(*frame, device);
  } catch (const std::bad_alloc&) {
    return make_error(*frame, "polyop: there is no memory for the call");
  } catch (const std::exception& problem) {
    return make_error(*frame, std::string("polyop: ") + problem.what());
  }
}

Error* handle_cpu(Frame* frame) { return handle(frame, kCpu); }
Error* handle_cuda(Frame* frame) { return handle(frame, kCuda); }

}  // namespace

int xla_dtype(const std::string& name) {
  for (const DTypeRow& row : kDTypeRows) {
    if (name == row.name) return row.xla;
  }
  return -1;
}

PyObject* xla_handler(const char* platform) {
  const bool cpu = std::strcmp(platform, "cpu") == 0;
  if (!cpu && std::strcmp(platform, "CUDA") != 0) {
    PyErr_SetString(PyExc_ValueError, "the platform must be 'cpu' or 'CUDA'");
    return nullptr;
  }
  return PyCapsule_New(reinterpret_cast<void*>(cpu ? handle_cpu : handle_cuda), nullptr, nullptr);
}

void pretend_xla_version(int major, int minor) {
  reported_major = major;
  reported_minor = minor;
}

}  // namespace polyop
