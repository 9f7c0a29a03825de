// PyTorch tensors through the DLPack exchange table, without any PyTorch header.
//
// The fast call skips PyTorch's dispatcher. The guards detect what it must not skip: dispatch modes,
// functorch, tracing and autocast (one comparison of the thread's dispatch key set), torch-function modes,
// the level of forward mode, the profiler, gradients, conjugate and negative bits. Some symbols for that are
// not public, so they are probed. When one is missing, plain() returns false and every call goes through
// torch.ops.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "../openmp.h"
#include "host.h"
#include "polyop/export/dlpack.h"
#include "torch_tensors.h"

namespace polyop {

namespace {

struct KeySets {
  uint64_t included, excluded;
};

const dlpack::Exchange* exchange;
PyTypeObject *tensor_type, *parameter_type;

void* c10_library;
bool (*grad_mode)();
int64_t (*function_modes)();
KeySets inference_keys;
bool guards_ready;

// Offset of the implementation in a tensor object, and of the dispatch keys in the implementation.
// locate_keys() searches sample tensors for known values; -1: not found. With them, one load and one mask
// replace two method calls.
ptrdiff_t implementation_at = -1, keys_at = -1;
uint64_t unusual_keys, ordinary_keys;  // see is_unusual(); the keys of an ordinary tensor on the CPU
bool (*implementation_requires_grad)(const void*);

getter requires_grad;
void* requires_grad_closure;
PyCFunction is_conj, is_neg;
PyObject *forward_ad, *level_name, *profiler, *profiler_name;  // module dictionaries and names in them

const char* const kKeySets = "_ZN3c104impl26raw_local_dispatch_key_setE";
const char* const kFunctionModes = "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv";
const char* const kGradMode = "aoti_torch_grad_mode_is_enabled";
const char* const kRequiresGrad = "_ZNK3c1010TensorImpl13requires_gradEv";

KeySets* key_sets() {
  static thread_local KeySets* keys = nullptr;  // dlsym resolves a thread-local per thread
  if (keys == nullptr) keys = static_cast<KeySets*>(dlsym(c10_library, kKeySets));
  return keys;
}

int32_t row_of(dlpack::DataType type) {
  static int32_t rows[32][256];
  static bool filled = [] {
    for (auto& code : rows)
      for (int32_t& row : code) row = -1;
    for (size_t i = 0; i < dtypes().size(); ++i)
      rows[dtypes()[i].dlpack_code & 31][dtypes()[i].dlpack_bits] = static_cast<int32_t>(i);
    return true;
  }();
  (void)filled;
  return type.lanes == 1 && type.code < 32 ? rows[type.code][type.bits] : -1;
}

bool is_dense(const View& view) {
  if (view.strides == nullptr) return true;
  int64_t expected = 1;
  bool dense = true;
  for (int i = view.ndim - 1; i >= 0; --i) {
    if (view.shape[i] == 0) return true;
    if (view.shape[i] != 1 && view.strides[i] != expected) dense = false;
    expected *= view.shape[i];
  }
  return dense && view.data != nullptr;
}

bool says_true(PyObject* answer) {
  Py_XDECREF(answer);
  return answer != Py_False;  // an error counts as true: then the slow path raises it
}

const char* implementation(PyObject* tensor) {
  return *reinterpret_cast<const char* const*>(reinterpret_cast<const char*>(tensor) + implementation_at);
}

uint64_t keys_of(PyObject* tensor) {
  uint64_t keys = 0;
  std::memcpy(&keys, implementation(tensor) + keys_at, sizeof keys);
  return keys;
}

// Whether the data of a tensor may differ from its values: a conjugate or negative view, a subclass.
bool is_unusual(PyObject* tensor, bool complex) {
  if (keys_at >= 0) return (keys_of(tensor) & unusual_keys) != 0;
  const bool unusual = says_true(is_neg(tensor, nullptr)) || (complex && says_true(is_conj(tensor, nullptr)));
  if (unusual) PyErr_Clear();
  return unusual;
}

bool wants_gradient(PyObject* tensor) {
  if (implementation_requires_grad != nullptr && implementation_at >= 0) {
    return implementation_requires_grad(implementation(tensor));
  }
  return says_true(requires_grad(tensor, requires_grad_closure));
}

bool owns(PyTypeObject* type) { return type == tensor_type || (type == parameter_type && type != nullptr); }

bool plain() {
  if (!guards_ready) return false;
  const KeySets* keys = key_sets();
  if ((keys->included | keys->excluded) != 0 &&
      !(keys->included == inference_keys.included && keys->excluded == inference_keys.excluded)) {
    return false;
  }
  if (function_modes() != 0) return false;
  PyObject* level = PyDict_GetItemWithError(forward_ad, level_name);
  if (level == nullptr || PyLong_AsLong(level) >= 0) return false;
  return PyDict_GetItemWithError(profiler, profiler_name) == Py_False;
}

// Fills in a view through the exchange table. False when the slow path must handle the tensor.
bool borrow_exchanged(PyObject* tensor, View* view) {
  dlpack::Tensor borrowed;
  if (exchange->borrow(tensor, &borrowed) != 0) {  // sparse, meta, quantised
    PyErr_Clear();
    return false;
  }
  view->dtype = row_of(borrowed.dtype);
  view->data = borrowed.data == nullptr ? nullptr : static_cast<char*>(borrowed.data) + borrowed.byte_offset;
  view->ndim = borrowed.ndim;
  view->shape = borrowed.shape;
  view->strides = borrowed.strides;
  view->device = borrowed.device.type;
  view->device_id = borrowed.device.id;
  return view->dtype >= 0 && !is_unusual(tensor, borrowed.dtype.code == 5);
}

BorrowResult borrow(PyObject* tensor, bool guarded, bool strided, View* view) {
  const bool ordinary = keys_at >= 0 && keys_of(tensor) == ordinary_keys;
  if (!(ordinary && torch_tensors::read(reinterpret_cast<const char*>(tensor) + implementation_at, view)) &&
      !borrow_exchanged(tensor, view)) {
    return BorrowResult::kOther;
  }
  const bool dense = is_dense(*view);
  if (!dense && (!strided || view->data == nullptr)) return BorrowResult::kOther;
  if (dense) view->strides = nullptr;
  view->byte_strides = false;
  if (guarded && view->device != kCpu) return BorrowResult::kOther;  // torch.ops sets the device guard
  if (guarded && wants_gradient(tensor) && grad_mode()) return BorrowResult::kDifferentiated;
  return BorrowResult::kDense;
}

void set_error(void*, const char* kind, const char* message) {
  PyErr_Format(PyExc_RuntimeError, "PyTorch's allocator: %s: %s", kind, message);
}

bool empty(const Spec& spec, const View& device, NewTensor* result) {
  result->handle = device.device == kCpu ? torch_tensors::empty(spec, &result->view) : nullptr;
  result->exchanged = result->handle == nullptr;
  if (!result->exchanged) return true;
  const DType& dtype = dtypes()[static_cast<size_t>(spec.dtype)];
  if (torch_tensors::lacks(spec.dtype)) {
    PyErr_Format(PyExc_TypeError, "output: this PyTorch has no dtype %s", dtype.name.c_str());
    return false;
  }
  dlpack::Tensor prototype = {nullptr,
                              {device.device, device.device_id},
                              spec.ndim,
                              {dtype.dlpack_code, dtype.dlpack_bits, 1},
                              const_cast<int64_t*>(spec.shape),
                              nullptr,
                              0};
  dlpack::ManagedTensor* managed = nullptr;
  if (exchange->allocate(&prototype, &managed, nullptr, set_error) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "PyTorch's allocator failed");
    return false;
  }
  result->handle = managed;
  const dlpack::Tensor& tensor = managed->tensor;
  result->view = {tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset,
                  tensor.shape,
                  tensor.ndim,
                  spec.dtype,
                  tensor.device.type,
                  tensor.device.id};
  return true;
}

PyObject* finish(NewTensor* result) {
  if (!result->exchanged) return torch_tensors::finish(result->handle);
  void* object = nullptr;
  if (exchange->to_object(static_cast<dlpack::ManagedTensor*>(result->handle), &object) != 0) return nullptr;
  return static_cast<PyObject*>(object);
}

void drop(NewTensor* result) {
  if (!result->exchanged) return torch_tensors::drop(result->handle);
  auto* managed = static_cast<dlpack::ManagedTensor*>(result->handle);
  managed->deleter(managed);
}

void* stream(const View& view) {
  void* current = nullptr;
  if (view.device == kCpu || exchange->current_stream(view.device, view.device_id, &current) != 0)
    return nullptr;
  return current;
}

PyObject* type_dict(PyTypeObject* type) {
  return PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dict__");
}

// Finds the C functions behind is_conj, is_neg and requires_grad of TensorBase. Calling them skips the lookup
// of attributes.
bool find_methods(PyObject* torch) {
  PyObject* module = PyObject_GetAttrString(torch, "_C");
  PyObject* base = module == nullptr ? nullptr : PyObject_GetAttrString(module, "TensorBase");
  Py_XDECREF(module);
  if (base == nullptr) return false;
  PyObject* names = type_dict(reinterpret_cast<PyTypeObject*>(base));
  PyObject* property = PyMapping_GetItemString(names, "requires_grad");
  PyObject* conj = PyMapping_GetItemString(names, "is_conj");
  PyObject* neg = PyMapping_GetItemString(names, "is_neg");
  Py_XDECREF(names);
  Py_DECREF(base);  // torch keeps its types alive
  const bool usable = property != nullptr && conj != nullptr && neg != nullptr &&
                      Py_IS_TYPE(property, &PyGetSetDescr_Type) && Py_IS_TYPE(conj, &PyMethodDescr_Type) &&
                      Py_IS_TYPE(neg, &PyMethodDescr_Type);
  if (usable) {
    const PyGetSetDef* definition = reinterpret_cast<PyGetSetDescrObject*>(property)->d_getset;
    requires_grad = definition->get;
    requires_grad_closure = definition->closure;
    is_conj = reinterpret_cast<PyMethodDescrObject*>(conj)->d_method->ml_meth;
    is_neg = reinterpret_cast<PyMethodDescrObject*>(neg)->d_method->ml_meth;
  }
  Py_XDECREF(property);
  Py_XDECREF(conj);
  Py_XDECREF(neg);
  return usable;
}

PyObject* module_dict(const char* name) {
  PyObject* module = PyImport_ImportModule(name);
  if (module == nullptr) return nullptr;
  PyObject* names = PyModule_GetDict(module);
  Py_INCREF(names);
  Py_DECREF(module);
  return names;
}

// Finds what the guards need; appends the names of what is missing. False with a Python error.
bool find_guards(void* library, std::string* missing) {
  const auto find = [&](void* from, const char* name) {
    void* symbol = from == nullptr ? nullptr : dlsym(from, name);
    if (symbol == nullptr) *missing += std::string(missing->empty() ? "" : " ") + name;
    return symbol;
  };
  grad_mode = reinterpret_cast<bool (*)()>(find(library, kGradMode));
  function_modes = reinterpret_cast<int64_t (*)()>(find(library, kFunctionModes));
  find(c10_library, kKeySets);
  if (c10_library != nullptr) {
    implementation_requires_grad = reinterpret_cast<bool (*)(const void*)>(dlsym(c10_library, kRequiresGrad));
  }
  forward_ad = module_dict("torch.autograd.forward_ad");
  profiler = module_dict("torch.autograd.profiler");
  if (forward_ad == nullptr || profiler == nullptr) return false;
  level_name = PyUnicode_InternFromString("_current_level");
  profiler_name = PyUnicode_InternFromString("_is_profiler_enabled");
  if (PyDict_GetItemWithError(forward_ad, level_name) == nullptr) *missing += " forward_ad._current_level";
  if (PyDict_GetItemWithError(profiler, profiler_name) == nullptr)
    *missing += " profiler._is_profiler_enabled";
  return !PyErr_Occurred();
}

bool differentiating() { return grad_mode == nullptr || grad_mode(); }

}  // namespace

const Host torch_host = {owns, plain, borrow, wants_gradient, differentiating, empty, finish, drop, stream};

const Host* host_of(PyTypeObject* type) {
  if (numpy_host.owns(type)) return &numpy_host;
  if (torch_host.owns(type)) return &torch_host;
  return nullptr;
}

void locate_keys(const std::vector<TensorSample>& samples, uint64_t unusual) {
  constexpr ptrdiff_t kObject = 128, kImplementation = 192;  // bytes that both surely have
  const auto word = [](const void* from, ptrdiff_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, static_cast<const char*>(from) + offset, sizeof value);
    return value;
  };
  const auto find = [&](ptrdiff_t first, ptrdiff_t last, auto from, auto expected) {
    for (ptrdiff_t offset = first; offset < last; offset += 8) {
      bool all = !samples.empty();
      for (const TensorSample& sample : samples) all = all && word(from(sample), offset) == expected(sample);
      if (all) return offset;
    }
    return ptrdiff_t{-1};
  };
  const ptrdiff_t size = std::min<ptrdiff_t>(kObject, tensor_type->tp_basicsize);
  unusual_keys = unusual;
  if (!samples.empty()) ordinary_keys = samples[0].keys;
  implementation_at = find(
      sizeof(PyObject), size, [](const TensorSample& s) -> const void* { return s.tensor; },
      [](const TensorSample& s) { return s.implementation; });
  if (implementation_at < 0) return;
  keys_at = find(
      0, kImplementation,
      [](const TensorSample& s) { return reinterpret_cast<const void*>(s.implementation); },
      [](const TensorSample& s) { return s.keys; });
}

void note_inference_mode() {
  if (c10_library != nullptr && key_sets() != nullptr) inference_keys = *key_sets();
}

bool start_torch(PyObject* torch, const char* c10, const char* libtorch, const char* libtorch_python,
                 PyObject** missing) {
  PyObject* type = PyObject_GetAttrString(torch, "Tensor");
  if (type == nullptr) return false;
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  if (capsule == nullptr) return false;
  const auto* table =
      static_cast<const dlpack::Exchange*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  Py_DECREF(capsule);
  if (table == nullptr) return false;
  if (table->header.version.major != 1 || table->borrow == nullptr) {
    PyErr_SetString(PyExc_RuntimeError,
                    "PyTorch's DLPack exchange table is of a version that polyop does not know");
    return false;
  }
  if (!find_methods(torch)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_RuntimeError, "torch.Tensor lacks is_conj, is_neg or requires_grad");
    return false;
  }
  std::string names;
  c10_library = dlopen(c10, RTLD_LAZY | RTLD_NOLOAD);
  void* library = dlopen(libtorch, RTLD_LAZY | RTLD_NOLOAD);
  if (!find_guards(library, &names)) return false;
  take_openmp(library);
  torch_tensors::find(library, dlopen(libtorch_python, RTLD_LAZY | RTLD_NOLOAD));
  exchange = table;
  PyObject* nn = PyImport_ImportModule("torch.nn");
  if (nn == nullptr) return false;
  parameter_type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(nn, "Parameter"));
  Py_DECREF(nn);
  if (parameter_type == nullptr) return false;
  tensor_type = reinterpret_cast<PyTypeObject*>(type);  // torch keeps it alive
  guards_ready = names.empty();
  *missing = PyUnicode_FromString(names.c_str());
  return *missing != nullptr;
}

}  // namespace polyop
