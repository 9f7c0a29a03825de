#include "torch_tensors.h"

#include <dlfcn.h>

#include <string>

namespace polyop::torch_tensors {

namespace {

using Handle = void*;  // an at::Tensor*. An at::Tensor is one pointer, to the implementation

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
    auto* number_of =
        reinterpret_cast<int32_t (*)()>(dlsym(libtorch, ("aoti_torch_dtype_" + dtype.name).c_str()));
    const int32_t scalar = number_of == nullptr ? -1 : number_of();
    const bool fits = scalar >= 0 && scalar < kScalars;
    if (fits) row_of_scalar[scalar] = static_cast<int32_t>(scalar_of_row.size());
    scalar_of_row.push(fits ? scalar : -1);
  }
}

}  // namespace

void find(void* libtorch, void* libtorch_python) {
  bool all = libtorch != nullptr && libtorch_python != nullptr;
  const auto bind = [&](auto& function, void* library, const char* name) {
    void* symbol = all ? dlsym(library, name) : nullptr;
    all = symbol != nullptr;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
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

bool lacks(int32_t dtype) { return ready && scalar_of_row[static_cast<size_t>(dtype)] < 0; }

void* empty(const Spec& spec, View* view) {
  constexpr int32_t kMaxDims = 8;
  constexpr int64_t kMaxElements = int64_t{1} << 26;
  const int32_t scalar = ready ? scalar_of_row[static_cast<size_t>(spec.dtype)] : -1;
  if (scalar < 0 || spec.ndim > kMaxDims) return nullptr;
  int64_t strides[kMaxDims];
  int64_t step = 1;
  for (int32_t i = spec.ndim; i-- > 0;) {
    strides[i] = step;
    if (spec.shape[i] > kMaxElements || step > kMaxElements) return nullptr;
    step *= spec.shape[i] > 1 ? spec.shape[i] : 1;
  }
  if (step > kMaxElements) return nullptr;
  Handle handle = nullptr;
  void* data = nullptr;
  int64_t* shape = nullptr;
  if (functions.empty_strided(spec.ndim, spec.shape, strides, scalar, kTorchCpu, -1, &handle) != 0) {
    return nullptr;
  }
  if (functions.data(handle, &data) != 0 || functions.sizes(handle, &shape) != 0) {
    drop(handle);
    return nullptr;
  }
  *view = {data, shape, spec.ndim, spec.dtype, kCpu, 0};
  return handle;
}

PyObject* finish(void* handle) {
  PyObject* object = functions.wrap(handle);
  drop(handle);
  return object;
}

void drop(void* handle) { functions.remove(handle); }

bool read(const void* handle, View* view) {
  if (!ready) return false;
  auto* tensor = const_cast<void*>(handle);
  int64_t ndim = 0, *shape = nullptr, *strides = nullptr;
  int32_t scalar = -1;
  if (functions.dtype(tensor, &scalar) != 0 || scalar < 0 || scalar >= kScalars ||
      row_of_scalar[scalar] < 0 || functions.dim(tensor, &ndim) != 0 ||
      functions.sizes(tensor, &shape) != 0 || functions.strides(tensor, &strides) != 0 ||
      functions.data(tensor, &view->data) != 0) {
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
