// NumPy arrays through NumPy's C API: the only file that includes its headers.
#include "host.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

#include <unordered_map>

namespace polyop {

namespace {

constexpr int kBuiltin = 32;               // NumPy's own type numbers are below this
int32_t builtin_rows[kBuiltin];            // type number to row of dtypes()
std::unordered_map<int, int32_t>* others;  // the same for dtypes registered with NumPy (bfloat16)

int32_t row_of(int type_number) {
  if (type_number >= 0 && type_number < kBuiltin) return builtin_rows[type_number];
  const auto found = others->find(type_number);
  return found == others->end() ? -1 : found->second;
}

bool owns(PyTypeObject* type) { return type == &PyArray_Type; }

bool plain() { return true; }

Borrowed borrow(PyObject* tensor, bool, View* view) {
  auto* array = reinterpret_cast<PyArrayObject*>(tensor);
  if (!PyArray_ISCARRAY_RO(array)) return Borrowed::kOther;
  view->dtype = row_of(PyArray_TYPE(array));
  if (view->dtype < 0) return Borrowed::kOther;
  view->data = PyArray_DATA(array);
  view->ndim = PyArray_NDIM(array);
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  view->shape = reinterpret_cast<const int64_t*>(PyArray_DIMS(array));
  view->device = kCpu;
  view->device_id = 0;
  return Borrowed::kDense;
}

bool empty(const Output& spec, const View&, Fresh* fresh) {
  PyObject* descr = dtypes()[static_cast<size_t>(spec.dtype)].numpy;
  Py_INCREF(descr);  // PyArray_Empty takes it over
  PyObject* array = PyArray_Empty(static_cast<int>(spec.shape.size()),
                                  const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(spec.shape.data())),
                                  reinterpret_cast<PyArray_Descr*>(descr), 0);
  if (array == nullptr) return false;
  fresh->handle = array;
  borrow(array, false, &fresh->view);
  return true;
}

PyObject* finish(Fresh* fresh) { return static_cast<PyObject*>(fresh->handle); }

void drop(Fresh* fresh) { Py_DECREF(static_cast<PyObject*>(fresh->handle)); }

void* stream(const View&) { return nullptr; }

bool import_numpy() {
  import_array1(false);
  return true;
}

}  // namespace

const Host numpy_host = {owns, plain, borrow, empty, finish, drop, stream};

bool start_numpy() {
  if (!import_numpy()) return false;
  others = new std::unordered_map<int, int32_t>();
  for (int32_t& row : builtin_rows) row = -1;
  for (size_t i = 0; i < dtypes().size(); ++i) {
    const auto* descr = reinterpret_cast<PyArray_Descr*>(dtypes()[i].numpy);
    if (descr->type_num < kBuiltin) {
      builtin_rows[descr->type_num] = static_cast<int32_t>(i);
    } else {
      (*others)[descr->type_num] = static_cast<int32_t>(i);
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
