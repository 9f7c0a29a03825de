#include "torch_tensors.h"

#include <dlfcn.h>

#include <string>

namespace polyop::torch_tensors {

namespace {

using Handle = void*;  // an at::Tensor*; one is a pointer to its implementation, counted

struct Functions {
  int (*empty_strided)(int64_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                       int32_t device_type, int32_t device_index, Handle* made);
  int (*remove)(Handle);
  int (*data)(Handle, void**);
  int (*dim)(Handle, int64_t*);
  int (*sizes)(Handle, int64_t**);
  int (*strides)(Handle, int64_t**);
  int (*dtype)(Handle, int32_t*);
  PyObject* (*wrap)(Handle);
};
Functions functions;
bool ready;

const char* const kWrapMoved = "_Z16THPVariable_WrapON2at10TensorBaseE";  // not in older versions
const char* const kWrap = "_Z16THPVariable_WrapRKN2at10TensorBaseE";
constexpr int32_t kScalars = 64, kTorchCpu = 0;
int32_t row_of_scalar[kScalars];
Small<int32_t, 32> scalar_of_row;  // -1 where there is none

void find_dtypes(void* libtorch) {
  for (int32_t& row : row_of_scalar) row = -1;
  for (const DType& dtype : dtypes()) {
    auto* ask = reinterpret_cast<int32_t (*)()>(dlsym(libtorch, ("aoti_torch_dtype_" + dtype.name).c_str()));
    const int32_t scalar = ask == nullptr ? -1 : ask();
    const bool fits = scalar >= 0 && scalar < kScalars;
    if (fits) row_of_scalar[scalar] = static_cast<int32_t>(scalar_of_row.size());
    scalar_of_row.push(fits ? scalar : -1);
  }
}

}  // namespace

void find(void* libtorch, void* libtorch_python) {
  bool all = libtorch != nullptr && libtorch_python != nullptr;
  const auto bind = [&](auto& function, void* library, const char* name) {
    void* found = all ? dlsym(library, name) : nullptr;
    all = found != nullptr;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
  };
  bind(functions.empty_strided, libtorch, "aoti_torch_empty_strided");
  bind(functions.remove, libtorch, "aoti_torch_delete_tensor_object");
  bind(functions.data, libtorch, "aoti_torch_get_data_ptr");
  bind(functions.dim, libtorch, "aoti_torch_get_dim");
  bind(functions.sizes, libtorch, "aoti_torch_get_sizes");
  bind(functions.strides, libtorch, "aoti_torch_get_strides");
  bind(functions.dtype, libtorch, "aoti_torch_get_dtype");
  const bool moves = libtorch_python != nullptr && dlsym(libtorch_python, kWrapMoved) != nullptr;
  bind(functions.wrap, libtorch_python, moves ? kWrapMoved : kWrap);
  ready = all;
  if (ready && scalar_of_row.size() == 0) find_dtypes(libtorch);
}

void* empty(const Spec& spec, View* view) {
  constexpr int32_t kFew = 8;
  constexpr int64_t kLarge = int64_t{1} << 26;  // elements
  const int32_t scalar = ready ? scalar_of_row[static_cast<size_t>(spec.dtype)] : -1;
  if (scalar < 0 || spec.ndim > kFew) return nullptr;
  int64_t strides[kFew];
  int64_t step = 1;
  for (int32_t i = spec.ndim; i-- > 0;) {
    strides[i] = step;
    if (spec.shape[i] > kLarge || step > kLarge) return nullptr;
    step *= spec.shape[i] > 1 ? spec.shape[i] : 1;
  }
  if (step > kLarge) return nullptr;
  Handle made = nullptr;
  void* data = nullptr;
  int64_t* shape = nullptr;
  if (functions.empty_strided(spec.ndim, spec.shape, strides, scalar, kTorchCpu, -1, &made) != 0) {
    return nullptr;
  }
  if (functions.data(made, &data) != 0 || functions.sizes(made, &shape) != 0) {
    drop(made);
    return nullptr;
  }
  *view = {data, shape, spec.ndim, spec.dtype, kCpu, 0};
  return made;
}

PyObject* finish(void* handle) {
  PyObject* object = functions.wrap(handle);
  drop(handle);
  return object;
}

void drop(void* handle) { functions.remove(handle); }

bool read(const void* at, View* view) {
  if (!ready) return false;
  auto* handle = const_cast<void*>(at);
  int64_t ndim = 0, *shape = nullptr, *strides = nullptr;
  int32_t scalar = -1;
  if (functions.dtype(handle, &scalar) != 0 || scalar < 0 || scalar >= kScalars ||
      row_of_scalar[scalar] < 0 || functions.dim(handle, &ndim) != 0 ||
      functions.sizes(handle, &shape) != 0 || functions.strides(handle, &strides) != 0 ||
      functions.data(handle, &view->data) != 0) {
    return false;
  }
  view->dtype = row_of_scalar[scalar];
  view->ndim = static_cast<int32_t>(ndim);
  view->shape = shape;
  view->strides = strides;
  view->device = kCpu;
  view->device_id = 0;
  return true;
}

}  // namespace polyop::torch_tensors
