#include "mindspore_tensors.h"

#include <dlfcn.h>

#include <vector>

#include "../key.h"

namespace polyop::mindspore_tensors {

namespace {

// Members of mindspore::tensor::TensorPy, the C++ object behind a Python tensor.
const std::vector<int64_t>& (*get_shape)(const void*);
int (*get_type)(const void*);
bool (*is_contiguous)(const void*);

const void* object_of(PyObject* tensor) { return reinterpret_cast<const char*>(tensor) + sizeof(PyObject); }

template <typename Function>
bool look_up(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool read(PyObject* tensor, Facts* facts) {
  static constexpr int kTypes = 46;  // up to bfloat16: above it the numbers differ by version
  static const std::vector<int32_t> rows = [] {
    std::vector<int32_t> of_type(kTypes, -1);
    for (size_t row = 0; row < dtypes().size(); ++row) {
      const int type = dtypes()[row].type_id;
      if (type > 0 && type < kTypes) of_type[static_cast<size_t>(type)] = static_cast<int32_t>(row);
    }
    return of_type;
  }();
  try {
    const void* object = object_of(tensor);
    const std::vector<int64_t>& shape = get_shape(object);
    const int type = get_type(object);
    *facts = {shape.data(), static_cast<int32_t>(shape.size()),
              type > 0 && type < kTypes ? rows[static_cast<size_t>(type)] : -1, is_contiguous(object)};
  } catch (...) {
    return false;  // the slow path raises the error
  }
  return facts->row >= 0;
}

bool find(const char* path, PyObject* probe) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr || !look_up(library, "_ZNK9mindspore6tensor8TensorPy8GetShapeEv", &get_shape) ||
      !look_up(library, "_ZNK9mindspore6tensor8TensorPy11GetDataTypeEv", &get_type) ||
      !look_up(library, "_ZNK9mindspore6tensor8TensorPy12IsContiguousEv", &is_contiguous)) {
    return false;
  }
  Facts facts;
  return read(probe, &facts) && facts.ndim == 2 && facts.shape[0] == 2 && facts.shape[1] == 3 &&
         facts.dense && dtypes()[static_cast<size_t>(facts.row)].name == "int16";
}

}  // namespace polyop::mindspore_tensors
