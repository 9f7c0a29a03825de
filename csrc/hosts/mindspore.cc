// MindSpore has no C interface to its tensors: a tensor is read through a few cheap attributes, becomes
// a NumPy array over the same memory, and the call goes on as NumPy's. Outputs are NumPy's memory too.
#define PY_SSIZE_T_CLEAN
#include "mindspore.h"

#include <algorithm>

#include "../execute.h"
#include "../python_lock.h"
#include "mindspore_tensors.h"
#include "numpy_loops.h"

namespace polyop {

namespace {

class OwnedRef {
 public:
  explicit OwnedRef(PyObject* object) : object_(object) {}
  OwnedRef(const OwnedRef&) = delete;
  OwnedRef& operator=(const OwnedRef&) = delete;
  ~OwnedRef() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

constexpr Py_ssize_t kMaxTypes = 4, kMaxDtypes = 24;
constexpr int32_t kMaxDims = 32;

// The arguments of start_mindspore(). They live as long as the process.
struct MindSpore {
  PyTypeObject* types[kMaxTypes];  // exact types of tensors
  PyObject* dtypes[kMaxDtypes];    // MindSpore's object for each row of dtypes(), or null
  PyObject *data_ptr, *is_contiguous, *stride, *from_numpy, *recording, *tracing;
  bool devices;      // whether there are devices other than the CPU
  bool native;       // whether mindspore_tensors::read() works
  PyObject* module;  // the variables of the module that has the current trace, or null
  PyObject *shape_name, *dtype_name, *device_name, *gradient_name, *trace_name;
};
MindSpore ms;

bool owns(PyTypeObject* type) {
  for (PyTypeObject* one : ms.types) {
    if (one == type) return true;
  }
  return false;
}

int32_t row_of(PyObject* dtype) {
  for (int32_t row = 0; row < kMaxDtypes; ++row) {
    if (ms.dtypes[row] == dtype && dtype != nullptr) return row;
  }
  return -1;
}

bool on_cpu(PyObject* tensor) {
  if (!ms.devices) return true;
  const OwnedRef device(PyObject_GetAttr(tensor, ms.device_name));
  return device && PyUnicode_Check(device.get()) && PyUnicode_GetLength(device.get()) >= 3 &&
         PyUnicode_ReadChar(device.get(), 0) == 'C' && PyUnicode_ReadChar(device.get(), 1) == 'P';
}

bool read_sizes(PyObject* list, int64_t* sizes, int32_t* count) {
  const OwnedRef fast(PySequence_Fast(list, "sizes of a tensor"));
  if (!fast || PySequence_Fast_GET_SIZE(fast.get()) > kMaxDims) return false;
  *count = static_cast<int32_t>(PySequence_Fast_GET_SIZE(fast.get()));
  for (int32_t i = 0; i < *count; ++i) sizes[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast.get(), i));
  return PyErr_Occurred() == nullptr;
}

// Shape, strides and dtype of a tensor on which nothing is pending.
struct Layout {
  int64_t shape[kMaxDims], strides[kMaxDims];
  int32_t ndim = 0, row = -1;
  bool dense = false;

  // Reads them through attributes: where MindSpore's own functions are not found. False if no kernel has the
  // dtype, perhaps with a Python error.
  bool read_attributes(PyObject* tensor) {
    const OwnedRef dtype(PyObject_GetAttr(tensor, ms.dtype_name));
    row = row_of(dtype.get());
    if (!dtype || row < 0) return false;
    const OwnedRef sizes(PyObject_GetAttr(tensor, ms.shape_name));
    if (!sizes || !read_sizes(sizes.get(), shape, &ndim)) return false;
    const OwnedRef flag(taking_lock([&] { return PyObject_CallOneArg(ms.is_contiguous, tensor); }));
    dense = flag.get() == Py_True;
    return static_cast<bool>(flag);
  }

  bool read(PyObject* tensor) {
    mindspore_tensors::Facts facts{};
    if (!ms.native || !mindspore_tensors::read(tensor, &facts)) return read_attributes(tensor);
    if (facts.ndim > kMaxDims) return false;
    std::copy(facts.shape, facts.shape + facts.ndim, shape);
    ndim = facts.ndim;
    row = facts.row;
    dense = facts.dense;
    return true;
  }
};

// Returns a new array over the tensor's memory, after pending work on it is done. Null without a Python
// error: the tensor is not on the CPU, or no kernel has its dtype.
PyObject* array_of(PyObject* tensor) {
  Layout layout;
  if (!on_cpu(tensor)) return nullptr;
  const OwnedRef address(
      taking_lock([&] { return PyObject_CallOneArg(ms.data_ptr, tensor); }));  // waits for pending work
  if (!address || !layout.read(tensor)) return nullptr;
  void* data = PyLong_AsVoidPtr(address.get());
  int64_t elements = 1;
  for (int32_t i = layout.ndim; i-- > 0;) {
    layout.strides[i] = elements;
    elements *= layout.shape[i];
  }
  if (PyErr_Occurred() != nullptr || (data == nullptr && elements != 0)) return nullptr;
  if (!layout.dense) {
    int32_t step_count = 0;
    const OwnedRef steps_list(taking_lock([&] { return PyObject_CallOneArg(ms.stride, tensor); }));
    if (!steps_list || !read_sizes(steps_list.get(), layout.strides, &step_count) ||
        step_count != layout.ndim) {
      return nullptr;
    }
  }
  Py_INCREF(tensor);  // the array owns it
  return array_over(data, layout.row, layout.ndim, layout.shape, layout.strides, tensor);
}

// Whether a graph is being traced. Reads the variable of MindSpore's module if there is one, else calls its
// function.
bool is_traced() {
  PyObject* value = ms.module == nullptr ? nullptr : PyDict_GetItem(ms.module, ms.trace_name);
  if (value != nullptr) return value != Py_None;
  const OwnedRef called(taking_lock([&] { return PyObject_CallNoArgs(ms.tracing); }));
  return called.get() != Py_None;
}

// Whether MindSpore records a gradient for what is done with a tensor; true with a Python error if that is
// not known. The tensor is asked first: few require a gradient, and the other question takes five times as
// long.
bool is_recorded(PyObject* tensor) {
  const OwnedRef requires_grad(PyObject_GetAttr(tensor, ms.gradient_name));
  if (!requires_grad || requires_grad.get() == Py_False) return !requires_grad;
  const OwnedRef recording(taking_lock([&] { return PyObject_CallNoArgs(ms.recording); }));
  return recording.get() != Py_False;
}

// The arguments of a call with arrays in place of tensors.
struct Arrays {
  Small<PyObject*, 16> values;

  Arrays() = default;
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays() {
    for (PyObject* value : values) Py_DECREF(value);
  }

  // False, perhaps with a Python error, when the slow path must make the call.
  bool add(PyObject* value) {
    PyObject* array = convert(value);
    if (array == nullptr) return false;
    values.push(array);
    return true;
  }

  PyObject* convert(PyObject* value) {
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) return convert_list(value);
    if (!owns(Py_TYPE(value))) {
      if (host_of(Py_TYPE(value)) != nullptr)
        return nullptr;  // another framework's tensor: the slow path raises the error
      Py_INCREF(value);
      return value;
    }
    if (is_recorded(value)) return nullptr;
    return array_of(value);
  }

  PyObject* convert_list(PyObject* list) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    OwnedRef tuple(PyTuple_New(count));
    for (Py_ssize_t i = 0; tuple && i < count; ++i) {
      if (i >= PySequence_Fast_GET_SIZE(list)) return nullptr;  // another thread changed it
      PyObject* item = PySequence_Fast_GET_ITEM(list, i);
      Py_INCREF(item);
      const OwnedRef owner(item);
      PyObject* array = convert(item);
      if (array == nullptr) return nullptr;
      PyTuple_SET_ITEM(tuple.get(), i, array);
    }
    return tuple.release();
  }
};

PyObject* tensor_of(PyObject* array) {
  if (PyTuple_CheckExact(array) || PyList_CheckExact(array)) return nullptr;
  return taking_lock([&] { return PyObject_CallOneArg(ms.from_numpy, array); });
}

// Turns the outputs of launch() into tensors, packed as the call returns them.
PyObject* pack(PyObject* result, Pack mode) {
  const bool several = PyTuple_CheckExact(result) || PyList_CheckExact(result);
  const Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(result) : result == Py_None ? 0 : 1;
  if (mode == Pack::kPlain && count < 2) {
    if (count == 0) Py_RETURN_NONE;
    return tensor_of(several ? PySequence_Fast_GET_ITEM(result, 0) : result);
  }
  OwnedRef packed(mode == Pack::kList ? PyList_New(count) : PyTuple_New(count));
  for (Py_ssize_t i = 0; packed && i < count; ++i) {
    PyObject* tensor = tensor_of(several ? PySequence_Fast_GET_ITEM(result, i) : result);
    if (tensor == nullptr) return nullptr;
    if (mode == Pack::kList) {
      PyList_SET_ITEM(packed.get(), i, tensor);
    } else {
      PyTuple_SET_ITEM(packed.get(), i, tensor);
    }
  }
  return packed.release();
}

bool holds_tensor(PyObject* value) {
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      if (owns(Py_TYPE(PySequence_Fast_GET_ITEM(value, i)))) return true;
    }
    return false;
  }
  return owns(Py_TYPE(value));
}

PyObject* call_plain(PyObject* object, PyObject* const* args, Py_ssize_t count, bool* declined) {
  auto* self = reinterpret_cast<CallObject*>(object);
  bool has_tensor = false;
  for (Py_ssize_t i = 0; i < count && !has_tensor; ++i) has_tensor = holds_tensor(args[i]);
  if (!has_tensor || self->plain == 0 || count > self->positional) return nullptr;
  *declined = false;
  Arrays arrays;
  bool plain = !is_traced();
  for (Py_ssize_t i = 0; plain && i < count; ++i) plain = arrays.add(args[i]);
  Call call;
  if (!plain || gather(self, arrays.values.data(), count, &call) != GatherResult::kReady) {
    PyErr_Clear();  // the slow path raises it with a better text
    *declined = true;
    return nullptr;
  }
  const OwnedRef result(execute_prepared(self, &call, {static_cast<Pack>(self->inner_pack)}, declined));
  if (!result) return nullptr;
  PyObject* outputs = pack(result.get(), static_cast<Pack>(self->pack));
  if (outputs == nullptr) {  // MindSpore lacks an output's dtype: the slow path raises the error
    PyErr_Clear();
    *declined = true;
  }
  return outputs;
}

// start_mindspore(types, dtypes, functions, devices, library, probe)
// types: the exact types of tensors
// dtypes: MindSpore's dtype, or None, for each row of dtypes()
// functions: data_ptr, is_contiguous, stride, from_numpy, whether gradients are recorded, the current trace
// or None
// devices: whether there are devices other than the CPU
// library, probe: for mindspore_tensors::find(); what it answers is the result
PyObject* start(PyObject*, PyObject* args) {
  PyObject *types = nullptr, *rows = nullptr, *probe = nullptr;
  const char* library = nullptr;
  int devices = 0;
  if (!PyArg_ParseTuple(args, "O!O!(OOOOOO)psO", &PyTuple_Type, &types, &PyTuple_Type, &rows, &ms.data_ptr,
                        &ms.is_contiguous, &ms.stride, &ms.from_numpy, &ms.recording, &ms.tracing, &devices,
                        &library, &probe)) {
    return nullptr;
  }
  if (PyTuple_GET_SIZE(types) > kMaxTypes || PyTuple_GET_SIZE(rows) > kMaxDtypes) {
    PyErr_SetString(PyExc_ValueError, "too many types or dtypes");
    return nullptr;
  }
  ms.devices = devices != 0;
  Py_INCREF(args);  // never released: keeps everything in it alive
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); ++i) {
    ms.types[i] = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(types, i));
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
    PyObject* dtype = PyTuple_GET_ITEM(rows, i);
    ms.dtypes[i] = dtype == Py_None ? nullptr : dtype;
  }
  ms.shape_name = PyUnicode_InternFromString("_shape");
  ms.dtype_name = PyUnicode_InternFromString("_dtype");
  ms.device_name = PyUnicode_InternFromString("device");
  ms.gradient_name = PyUnicode_InternFromString("_requires_grad");
  ms.trace_name = PyUnicode_InternFromString("_jit_context");
  ms.module = PyFunction_Check(ms.tracing) ? PyFunction_GET_GLOBALS(ms.tracing) : nullptr;
  ms.native = mindspore_tensors::find(library, probe);
  mindspore_call = call_plain;
  return PyBool_FromLong(ms.native);
}

// mindspore_array(tensor): an array over the tensor's memory, or None; see array_of().
PyObject* array(PyObject*, PyObject* tensor) {
  PyObject* array = array_of(tensor);
  if (array == nullptr && PyErr_Occurred() == nullptr) Py_RETURN_NONE;
  return array;
}

}  // namespace

PyObject* (*mindspore_call)(PyObject*, PyObject* const*, Py_ssize_t, bool*) = nullptr;

PyMethodDef mindspore_methods[] = {
    {"start_mindspore", start, METH_VARARGS, "Start the MindSpore host of the native call."},
    {"mindspore_array", array, METH_O, "Return an array over a tensor's memory, or None."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace polyop
