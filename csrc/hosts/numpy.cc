// NumPy arrays through NumPy's C API: the only file that includes its headers.
#include "host.h"
#include "numpy_loops.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include <unordered_map>

namespace polyop {

namespace {

constexpr int kBuiltin = 32;     // NumPy's own type numbers are below this
int32_t builtin_rows[kBuiltin];  // type number -> row of dtypes(), or -1
std::unordered_map<int, int32_t>*
    registered_rows;  // the same for dtypes that libraries register with NumPy, such as bfloat16

int32_t row_of(int type_number) {
  if (type_number >= 0 && type_number < kBuiltin) return builtin_rows[type_number];
  const auto entry = registered_rows->find(type_number);
  return entry == registered_rows->end() ? -1 : entry->second;
}

bool owns(PyTypeObject* type) { return type == &PyArray_Type; }

bool plain() { return true; }

BorrowResult borrow(PyObject* tensor, bool, bool strided, View* view) {
  auto* array = reinterpret_cast<PyArrayObject*>(tensor);
  view->dtype = row_of(PyArray_TYPE(array));
  if (view->dtype < 0) return BorrowResult::kOther;  // elements of others may have no bytes
  view->strides = nullptr;
  view->read_only = !PyArray_ISWRITEABLE(array);
  if (!PyArray_ISCARRAY_RO(array)) {
    if (!strided || !PyArray_ISBEHAVED_RO(array)) return BorrowResult::kOther;
    for (int i = 0; i < PyArray_NDIM(array); ++i) {
      if (PyArray_STRIDE(array, i) % PyArray_ITEMSIZE(array) != 0) return BorrowResult::kOther;
    }
    view->strides = reinterpret_cast<const int64_t*>(PyArray_STRIDES(array));
    view->byte_strides = true;
  }
  view->data = PyArray_DATA(array);
  view->ndim = PyArray_NDIM(array);
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  view->shape = reinterpret_cast<const int64_t*>(PyArray_DIMS(array));
  view->device = kCpu;
  view->device_id = 0;
  return BorrowResult::kDense;
}

bool empty(const Spec& spec, const View&, NewTensor* tensor) {
  PyObject* descr = dtypes()[static_cast<size_t>(spec.dtype)].numpy;
  Py_INCREF(descr);  // PyArray_Empty steals it
  PyObject* array = PyArray_Empty(static_cast<int>(spec.ndim),
                                  const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(spec.shape)),
                                  reinterpret_cast<PyArray_Descr*>(descr), 0);
  if (array == nullptr) return false;
  tensor->handle = array;
  borrow(array, false, false, &tensor->view);
  return true;
}

PyObject* finish(NewTensor* tensor) { return static_cast<PyObject*>(tensor->handle); }

void drop(NewTensor* tensor) { Py_DECREF(static_cast<PyObject*>(tensor->handle)); }

void* stream(const View&) { return nullptr; }

bool wants_gradient(PyObject* tensor) {
  const int32_t row = row_of(PyArray_TYPE(reinterpret_cast<PyArrayObject*>(tensor)));
  return row >= 0 && dtypes()[static_cast<size_t>(row)].is_smooth();
}

bool import_numpy() {
  import_array1(false);
  return true;
}

bool differentiating() { return false; }

}  // namespace

const Host numpy_host = {owns, plain, borrow, wants_gradient, differentiating, empty, finish, drop, stream};

bool ufunc_loops(PyObject* object, UfuncLoops* result) {
  const auto* ufunc = reinterpret_cast<PyUFuncObject*>(object);
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* type = numpy == nullptr ? nullptr : PyObject_GetAttrString(numpy, "ufunc");
  Py_XDECREF(numpy);
  if (type == nullptr) return false;
  const bool fits = PyObject_IsInstance(object, type) == 1 && ufunc->nout == 1;
  Py_DECREF(type);
  if (!fits) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "needs a ufunc with one output");
    return false;
  }
  result->inputs = ufunc->nin;
  const int arguments = ufunc->nin + 1;
  for (int i = 0; i < ufunc->ntypes; ++i) {
    UfuncLoop loop{{}, nullptr, ufunc->data == nullptr ? nullptr : const_cast<void*>(ufunc->data[i])};
    loop.run = reinterpret_cast<decltype(loop.run)>(ufunc->functions[i]);
    bool supported = loop.run != nullptr;
    for (int k = 0; k < arguments; ++k) {
      loop.kinds.push_back(row_of(static_cast<unsigned char>(ufunc->types[i * arguments + k])));
      supported = supported && loop.kinds.back() >= 0;
    }
    if (supported) result->loops.push_back(std::move(loop));
  }
  result->same.assign(dtypes().size(), -1);
  for (size_t i = result->loops.size(); i-- > 0;) {  // backwards: the first of several wins
    const std::vector<int32_t>& kinds = result->loops[i].kinds;
    bool equal = true;
    for (const int32_t kind : kinds) equal = equal && kind == kinds[0];
    if (equal) result->same[static_cast<size_t>(kinds[0])] = static_cast<int>(i);
  }
  return true;
}

PyObject* array_over(void* data, int32_t row, int32_t ndim, const int64_t* shape, const int64_t* strides,
                     PyObject* owner) {
  PyObject* descr = dtypes()[static_cast<size_t>(row)].numpy;
  const auto size = static_cast<npy_intp>(PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(descr)));
  std::vector<npy_intp> steps(strides, strides + ndim);
  for (npy_intp& step : steps) step *= size;
  static char none[16];  // the target of an empty array's data pointer
  Py_INCREF(descr);      // PyArray_NewFromDescr steals it
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(descr), ndim,
                                         reinterpret_cast<const npy_intp*>(shape), steps.data(),
                                         data == nullptr ? none : data, NPY_ARRAY_WRITEABLE, nullptr);
  if (array == nullptr || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) < 0) {
    if (array == nullptr) Py_DECREF(owner);
    Py_XDECREF(array);
    return nullptr;
  }
  return array;
}

bool start_numpy() {
  if (!import_numpy()) return false;
  registered_rows = new std::unordered_map<int, int32_t>();
  for (int32_t& row : builtin_rows) row = -1;
  for (size_t i = 0; i < dtypes().size(); ++i) {
    const auto* descr = reinterpret_cast<PyArray_Descr*>(dtypes()[i].numpy);
    if (descr->type_num < kBuiltin) {
      builtin_rows[descr->type_num] = static_cast<int32_t>(i);
    } else {
      (*registered_rows)[descr->type_num] = static_cast<int32_t>(i);
    }
  }
  // two C types have 64 bits on Linux; NumPy keeps a type number for each
  constexpr int kPairs[][2] = {{NPY_LONGLONG, NPY_LONG}, {NPY_ULONGLONG, NPY_ULONG}};
  for (const auto& pair : kPairs) {
    if (builtin_rows[pair[0]] < 0) builtin_rows[pair[0]] = builtin_rows[pair[1]];
    if (builtin_rows[pair[1]] < 0) builtin_rows[pair[1]] = builtin_rows[pair[0]];
  }
  return true;
}

}  // namespace polyop
