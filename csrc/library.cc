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

// The pointers that the companions take, over a list of specs.
struct Pointers {
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;

  explicit Pointers(const std::vector<TensorSpec>& specs) {
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

// Every pointer into the heap is larger: where programs are not loaded at random places it begins a few MiB
// up. Three sizes from here on, none less than the one before, would be of a tensor of 2^60 elements.
constexpr int64_t kPointer = int64_t{1} << 20;

// A C symbol does not tell which of its two forms a function returns, and the wrong one is not
// an error but garbage: dimensions that are addresses, or rows that begin at small numbers.
// Only the three pointers of the vector itself are trusted.
bool looks_like_rows(const OneShape& shape) {
  if (shape.size() % 3 != 0) return false;
  bool any = false;
  for (size_t i = 0; i < shape.size(); i += 3) {
    const bool filled = shape[i] > kPointer && shape[i + 1] >= shape[i] && shape[i + 2] >= shape[i + 1];
    const bool empty = shape[i] == 0 && shape[i + 1] == 0 && shape[i + 2] == 0;
    if (!filled && !empty) return false;
    any = any || filled;
  }
  return any;  // of zeros alone it may be three empty dimensions
}

bool looks_like_one_shape(const Shapes& rows) {
  const auto* first = reinterpret_cast<const int64_t*>(rows.data());
  const auto* last = reinterpret_cast<const int64_t*>(rows.data() + rows.size());
  const auto bytes = reinterpret_cast<const char*>(last) - reinterpret_cast<const char*>(first);
  if (bytes % static_cast<int64_t>(sizeof(OneShape)) != 0) return true;
  for (const int64_t* at = first; at + 2 < last; at += 3) {
    const bool empty = at[0] == 0 && at[1] == 0 && at[2] == 0;
    const bool rows_begin = at[0] > kPointer && at[0] % 8 == 0 && at[1] >= at[0] && at[2] >= at[1];
    if (!empty && !rows_begin) return true;
  }
  return false;
}

constexpr int kMode = RTLD_NOW | RTLD_LOCAL;

// A name of an open file that no file had before: the loader compares names first, and numbers of files come
// again. The count is spelled in single and double slashes, which are one to the system.
std::string name_of_file(int file) {
  static std::atomic<uint64_t> count{0};
  std::string name = "/proc/self/fd/";
  for (uint64_t left = ++count; left != 0; left >>= 1) name += (left & 1) != 0 ? "./" : ".//";
  return name + std::to_string(file);
}

// Opens the file itself, whatever lies at its path by now. Debuggers, dladdr and backtraces read the name
// that the loader keeps: it becomes the path. Nobody closes libraries, so nobody frees the name.
void* open_file(const std::string& path, int file) {
  if (access("/proc/self/fd", F_OK) != 0) return dlopen(path.c_str(), kMode);  // a system without /proc
  const std::string name = name_of_file(file);
  void* handle = dlopen(name.c_str(), kMode);
  if (handle == nullptr) {
    const char* said = dlerror();
    std::string text = said == nullptr ? "the loader gave no reason" : said;
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + path.size())) {
      text.replace(at, name.size(), path);
    }
    throw std::runtime_error(text);
  }
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name == name) map->l_name = strdup(path.c_str());
  return handle;
}

}  // namespace

uintptr_t open_library(const std::string& path, int file) {
  void* handle = file < 0 ? dlopen(path.c_str(), kMode) : open_file(path, file);
  if (handle == nullptr) {
    const char* text = dlerror();
    throw std::runtime_error(text == nullptr ? "the loader gave no reason" : text);
  }
  connect_threads(handle);
  connect_scratch(handle);
  return reinterpret_cast<uintptr_t>(handle);
}

uintptr_t find_symbol(uintptr_t library, const std::string& name) {
  return reinterpret_cast<uintptr_t>(dlsym(reinterpret_cast<void*>(library), name.c_str()));
}

int call_init(uintptr_t address, const std::vector<TensorSpec>& specs, Extra& extra) {
  Pointers at(specs);
  forget_error();
  using Init = int (*)(int*, int64_t**, const char**, void*);
  return as<Init>(address)(at.ndims.data(), at.shapes.data(), at.dtypes.data(), extra.contract());
}

Shapes call_infer_shape(uintptr_t address, const std::vector<TensorSpec>& inputs, Extra& extra,
                        bool several) {
  Pointers at(inputs);
  if (several) {
    using Infer = Shapes (*)(int*, int64_t**, void*);
    Shapes found = as<Infer>(address)(at.ndims.data(), at.shapes.data(), extra.contract());
    if (looks_like_one_shape(found)) {
      new Shapes(std::move(found));  // its elements are no vectors: destroying it would free numbers
      throw std::runtime_error("returned one shape, where the operator has several outputs");
    }
    return found;
  }
  using Infer = OneShape (*)(int*, int64_t**, void*);
  OneShape found = as<Infer>(address)(at.ndims.data(), at.shapes.data(), extra.contract());
  if (looks_like_rows(found)) {
    throw std::runtime_error("returned a list of shapes, where the operator has one output");
  }
  return {found};
}

std::vector<int> call_infer_type(uintptr_t address, const std::vector<int>& types, Extra& extra,
                                 bool several) {
  if (several) {
    using Infer = std::vector<int> (*)(std::vector<int>, void*);
    return as<Infer>(address)(types, extra.contract());
  }
  using Infer = int (*)(std::vector<int>, void*);
  return {as<Infer>(address)(types, extra.contract())};
}

}  // namespace polyop
