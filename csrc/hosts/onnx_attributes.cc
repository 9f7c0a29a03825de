#include "onnx_attributes.h"

#include <memory>

namespace polyop {

namespace {

using ort::Api;
using ort::Info;

// Whether a call went well; the words of one that did not are of no use.
bool well(const Api& api, ort::Status* status) {
  if (status == nullptr) return true;
  api.release_status(status);
  return false;
}

template <typename Make>
PyObject* list_of(size_t count, Make make) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; list != nullptr && i < count; ++i) {
    PyObject* item = make(i);
    if (item == nullptr) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
    }
  }
  return list;
}

// Bytes that are no UTF-8 stay bytes, which are no attribute: they are refused by name.
PyObject* text_of(const char* bytes, size_t size) {
  const auto length = static_cast<Py_ssize_t>(size);
  PyObject* text = PyUnicode_DecodeUTF8(bytes, length, nullptr);
  if (text != nullptr) return text;
  PyErr_Clear();
  return PyBytes_FromStringAndSize(bytes, length);
}

PyObject* strings_of(const Api& api, const ort::Value* value, size_t count) {
  size_t bytes = 0;
  if (!well(api, api.string_bytes(value, &bytes))) return nullptr;
  std::string all(bytes, '\0');
  std::vector<size_t> starts(count + 1, bytes);
  if (count > 0 && !well(api, api.strings(value, all.data(), bytes, starts.data(), count))) return nullptr;
  return list_of(count, [&](size_t i) { return text_of(all.data() + starts[i], starts[i + 1] - starts[i]); });
}

constexpr int kInt64 = 7, kFloat64 = 11;  // ONNX's numbers

PyObject* tensor_of(const Api& api, ort::Value* value) {
  ort::TensorInfo* info = nullptr;
  if (!well(api, api.tensor_info(value, &info))) return nullptr;
  const std::unique_ptr<ort::TensorInfo, void (*)(ort::TensorInfo*)> owner(info, api.release_tensor_info);
  int kind = 0;
  size_t ndim = 0;
  void* data = nullptr;
  if (!well(api, api.element_type(info, &kind)) || !well(api, api.ndim(info, &ndim))) return nullptr;
  if (ndim > 1) return PyBytes_FromFormat("a tensor of %zu dimensions", ndim);
  std::vector<int64_t> sizes(ndim);
  if (!well(api, api.shape(info, sizes.data(), ndim))) return nullptr;
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  PyObject* list = nullptr;
  if (kind == ort::kString) {
    list = strings_of(api, value, count);
  } else if ((kind == kInt64 || kind == kFloat64) && well(api, api.data(value, &data))) {
    list = list_of(count, [&](size_t i) {
      return kind == kInt64 ? PyLong_FromLongLong(static_cast<const int64_t*>(data)[i])
                            : PyFloat_FromDouble(static_cast<const double*>(data)[i]);
    });
  }
  if (kind != ort::kString && kind != kInt64 &&
      kind != kFloat64)  // bytes are no attribute: they are refused by name
    return PyBytes_FromFormat("a tensor of ONNX's dtype %d", kind);
  if (list == nullptr || ndim > 0) return list;
  PyObject* only = PyList_GET_ITEM(list, 0);
  Py_INCREF(only);
  Py_DECREF(list);
  return only;
}

// Null, and no error, where the node does not have it, or has it as something else.
PyObject* read(const Api& api, const Info* info, const char* name) {
  float number = 0;
  int64_t whole = 0;
  size_t size = 0;
  if (well(api, api.read_int(info, name, &whole))) return PyLong_FromLongLong(whole);
  if (well(api, api.read_float(info, name, &number))) return PyFloat_FromDouble(number);
  if (well(api, api.read_string(info, name, nullptr, &size))) {
    std::string text(size, '\0');  // with the NUL at its end
    if (well(api, api.read_string(info, name, text.data(), &size)))
      return text_of(text.data(), size > 0 ? size - 1 : 0);
  }
  ort::Allocator* allocator = nullptr;
  ort::Value* value = nullptr;
  if (well(api, api.allocator(&allocator)) && well(api, api.read_tensor(info, name, allocator, &value))) {
    const std::unique_ptr<ort::Value, void (*)(ort::Value*)> owner(value, api.release_value);
    return tensor_of(api, value);
  }
  if (!well(api, api.read_ints(info, name, nullptr, &size))) return nullptr;  // there is no such attribute
  if (size > 0) {  // an attribute that is no list of ints has none
    std::vector<int64_t> all(size);
    return !well(api, api.read_ints(info, name, all.data(), &size))
               ? nullptr
               : list_of(size, [&](size_t i) { return PyLong_FromLongLong(all[i]); });
  }
  if (!well(api, api.read_floats(info, name, nullptr, &size))) return nullptr;
  if (size == 0) return PyTuple_New(0);  // no list of numbers, or an empty one
  std::vector<float> all(size);
  if (size > 0 && !well(api, api.read_floats(info, name, all.data(), &size))) return nullptr;
  return list_of(size, [&](size_t i) { return PyFloat_FromDouble(all[i]); });
}

}  // namespace

PyObject* onnx_attributes(const Api& api, const Info* info, const std::vector<std::string>& names) {
  PyObject* all = PyDict_New();
  for (size_t i = 0; all != nullptr && i < names.size(); ++i) {
    PyObject* value = read(api, info, names[i].c_str());
    const bool bad = value == nullptr ? PyErr_Occurred() != nullptr
                                      : PyDict_SetItemString(all, names[i].c_str(), value) < 0;
    Py_XDECREF(value);
    if (bad) Py_CLEAR(all);
  }
  return all;
}

}  // namespace polyop
