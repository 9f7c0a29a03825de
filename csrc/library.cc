#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "scratch.h"
#include "threads.h"

namespace polyop {

namespace {

// The arrays of pointers that Init and InferShape take, over a list of specs.
struct SpecPointers {
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;

  explicit SpecPointers(const std::vector<TensorSpec>& specs) {
    static int64_t none = 0;  // a 0-d tensor's shape pointer is valid and not read
    for (const TensorSpec& spec : specs) {
      ndims.push_back(static_cast<int>(spec.shape.size()));
      shapes.push_back(spec.shape.empty() ? &none : const_cast<int64_t*>(spec.shape.data()));
      dtypes.push_back(spec.dtype.c_str());
    }
    dtypes.push_back(nullptr);
  }
};

template <typename F>
F as(uintptr_t address) {
  return reinterpret_cast<F>(address);
}

using OneShape = std::vector<int64_t>;
using Shapes = std::vector<std::vector<int64_t>>;

// Every pointer into the heap is larger: even without address randomisation the heap begins a few MiB up.
// Three dimensions this large, none less than the one before, would be a tensor of 2^60 elements.
constexpr int64_t kMinPointer = int64_t{1} << 20;

// A C symbol does not tell which of the two types a function returns. Reading the wrong one gives garbage: a
// shape whose dimensions are addresses, or a list whose rows begin at small numbers. These two functions
// recognise it. They read only what the three pointers of the outer vector span.
bool looks_like_rows(const OneShape& shape) {
  if (shape.size() % 3 != 0) return false;
  bool any_filled = false;
  for (size_t i = 0; i < shape.size(); i += 3) {
    const bool filled = shape[i] > kMinPointer && shape[i + 1] >= shape[i] && shape[i + 2] >= shape[i + 1];
    const bool empty = shape[i] == 0 && shape[i + 1] == 0 && shape[i + 2] == 0;
    if (!filled && !empty) return false;
    any_filled = any_filled || filled;
  }
  return any_filled;  // zeros alone may as well be a shape of empty dimensions
}

bool looks_like_one_shape(const Shapes& rows) {
  const auto* first = reinterpret_cast<const int64_t*>(rows.data());
  const auto* last = reinterpret_cast<const int64_t*>(rows.data() + rows.size());
  const auto bytes = reinterpret_cast<const char*>(last) - reinterpret_cast<const char*>(first);
  if (bytes % static_cast<int64_t>(sizeof(OneShape)) != 0) return true;
  for (const int64_t* row = first; row + 2 < last; row += 3) {
    const bool empty = row[0] == 0 && row[1] == 0 && row[2] == 0;
    const bool rows_begin = row[0] > kMinPointer && row[0] % 8 == 0 && row[1] >= row[0] && row[2] >= row[1];
    if (!empty && !rows_begin) return true;
  }
  return false;
}

constexpr int kOpenMode = RTLD_NOW | RTLD_LOCAL;

// A path of an open file that was never used before. The loader takes a library with a known name for the one
// that is loaded already, and descriptor numbers are reused. So a count is part of the path: its binary
// digits are "./" and ".//", which mean nothing to the system.
std::string unique_name(int file) {
  static std::atomic<uint64_t> count{0};
  std::string name = "/proc/self/fd/";
  for (uint64_t bits = ++count; bits != 0; bits >>= 1) name += (bits & 1) != 0 ? "./" : ".//";
  return name + std::to_string(file);
}

// Opens the file itself, whatever is at its path by now. Debuggers, dladdr and backtraces read the name that
// the loader keeps, so that is set to the path. Libraries are never closed, so the name is never freed.
void* open_file(const std::string& path, int file) {
  if (access("/proc/self/fd", F_OK) != 0) return dlopen(path.c_str(), kOpenMode);  // a system without /proc
  const std::string name = unique_name(file);
  void* handle = dlopen(name.c_str(), kOpenMode);
  if (handle == nullptr) {
    const char* loader_text = dlerror();
    std::string text = loader_text == nullptr ? "the loader gave no reason" : loader_text;
    for (size_t position = text.find(name); position != std::string::npos;
         position = text.find(name, position + path.size())) {
      text.replace(position, name.size(), path);
    }
    throw std::runtime_error(text);
  }
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name == name) map->l_name = strdup(path.c_str());
  return handle;
}

}  // namespace

uintptr_t open_library(const std::string& path, int file) {
  void* handle = file < 0 ? dlopen(path.c_str(), kOpenMode) : open_file(path, file);
  if (handle == nullptr) {
    const char* loader_text = dlerror();
    throw std::runtime_error(loader_text == nullptr ? "the loader gave no reason" : loader_text);
  }
  connect_threads(handle);
  connect_scratch(handle);
  return reinterpret_cast<uintptr_t>(handle);
}

uintptr_t find_symbol(uintptr_t library, const std::string& name) {
  void* handle = reinterpret_cast<void*>(library);
  void* address = dlsym(handle, name.c_str());
  Dl_info info{};
  link_map *own = nullptr, *owner = nullptr;
  const bool is_own = address != nullptr && dlinfo(handle, RTLD_DI_LINKMAP, &own) == 0 &&
                      dladdr1(address, &info, reinterpret_cast<void**>(&owner), RTLD_DL_LINKMAP) != 0 &&
                      own == owner;
  return is_own ? reinterpret_cast<uintptr_t>(address) : 0;
}

Place place_of(uintptr_t address) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr) return {"", "", 0};
  const bool exact = info.dli_sname != nullptr && info.dli_saddr == reinterpret_cast<void*>(address);
  return {info.dli_fname, exact ? info.dli_sname : "", address - reinterpret_cast<uintptr_t>(info.dli_fbase)};
}

int call_init(uintptr_t address, const std::vector<TensorSpec>& specs, Extra& extra) {
  SpecPointers pointers(specs);
  clear_error();
  using Init = int (*)(int*, int64_t**, const char**, void*);
  return as<Init>(address)(pointers.ndims.data(), pointers.shapes.data(), pointers.dtypes.data(),
                           extra.pointer());
}

Shapes call_infer_shape(uintptr_t address, const std::vector<TensorSpec>& inputs, Extra& extra,
                        bool several) {
  SpecPointers pointers(inputs);
  if (several) {
    using Infer = Shapes (*)(int*, int64_t**, void*);
    Shapes shapes = as<Infer>(address)(pointers.ndims.data(), pointers.shapes.data(), extra.pointer());
    if (looks_like_one_shape(shapes)) {
      // leaked: its elements are no vectors, so its destructor would free numbers
      new Shapes(std::move(shapes));
      throw std::runtime_error("returned one shape, where the operator has several outputs");
    }
    return shapes;
  }
  using Infer = OneShape (*)(int*, int64_t**, void*);
  OneShape shape = as<Infer>(address)(pointers.ndims.data(), pointers.shapes.data(), extra.pointer());
  if (looks_like_rows(shape)) {
    throw std::runtime_error("returned a list of shapes, where the operator has one output");
  }
  return {shape};
}

std::vector<int> call_infer_type(uintptr_t address, const std::vector<int>& types, Extra& extra,
                                 bool several) {
  if (several) {
    using Infer = std::vector<int> (*)(std::vector<int>, void*);
    return as<Infer>(address)(types, extra.pointer());
  }
  using Infer = int (*)(std::vector<int>, void*);
  return {as<Infer>(address)(types, extra.pointer())};
}

}  // namespace polyop
