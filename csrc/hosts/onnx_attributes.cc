#include "onnx_attributes.h"

#include <memory>

namespace polyop {

namespace {

using ort::Api;
using ort::Info;

// Whether a call succeeded. Its error is released: the text is of no use.
bool succeeded(const Api& api, ort::Status* status) {
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

// Returns a str, or bytes when it is not UTF-8. Python rejects bytes with an error that names the attribute.
PyObject* text_of(const char* bytes, size_t size) {
  const auto length = static_cast<Py_ssize_t>(size);
  PyObject* text = PyUnicode_DecodeUTF8(bytes, length, nullptr);
  if (text != nullptr) return text;
  PyErr_Clear();
  return PyBytes_FromStringAndSize(bytes, length);
}

PyObject* strings_of(const Api& api, const ort::Value* value, size_t count) {
  size_t bytes = 0;
  if (!succeeded(api, api.string_bytes(value, &bytes))) return nullptr;
  std::string all(bytes, '\0');
  std::vector<size_t> starts(count + 1, bytes);
  if (count > 0 && !succeeded(api, api.strings(value, all.data(), bytes, starts.data(), count)))
    return nullptr;
  return list_of(count, [&](size_t i) { return text_of(all.data() + starts[i], starts[i + 1] - starts[i]); });
}

constexpr int kInt64 = 7, kFloat64 = 11;  // ONNX's numbers of dtypes

PyObject* tensor_of(const Api& api, ort::Value* value) {
  ort::TensorInfo* info = nullptr;
  if (!succeeded(api, api.tensor_info(value, &info))) return nullptr;
  const std::unique_ptr<ort::TensorInfo, void (*)(ort::TensorInfo*)> owner(info, api.release_tensor_info);
  int dtype = 0;
  size_t ndim = 0;
  void* data = nullptr;
  if (!succeeded(api, api.element_type(info, &dtype)) || !succeeded(api, api.ndim(info, &ndim)))
    return nullptr;
  if (ndim > 1) return PyBytes_FromFormat("a tensor of %zu dimensions", ndim);
  std::vector<int64_t> sizes(ndim);
  if (!succeeded(api, api.shape(info, sizes.data(), ndim))) return nullptr;
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  PyObject* list = nullptr;
  if (dtype == ort::kString) {
    list = strings_of(api, value, count);
  } else if ((dtype == kInt64 || dtype == kFloat64) && succeeded(api, api.data(value, &data))) {
    list = list_of(count, [&](size_t i) {
      return dtype == kInt64 ? PyLong_FromLongLong(static_cast<const int64_t*>(data)[i])
                             : PyFloat_FromDouble(static_cast<const double*>(data)[i]);
    });
  }
  if (dtype != ort::kString && dtype != kInt64 && dtype != kFloat64)  // bytes: see text_of()
    return PyBytes_FromFormat("a tensor of ONNX's dtype %d", dtype);
  if (list == nullptr || ndim > 0) return list;
  PyObject* only = PyList_GET_ITEM(list, 0);
  Py_INCREF(only);
  Py_DECREF(list);
  return only;
}

// Returns the value of an attribute. Null without a Python error: the node has no such attribute, or one of a
// kind that is not supported.
PyObject* read(const Api& api, const Info* info, const char* name) {
  float real = 0;
  int64_t integer = 0;
  size_t size = 0;
  if (succeeded(api, api.read_int(info, name, &integer))) return PyLong_FromLongLong(integer);
  if (succeeded(api, api.read_float(info, name, &real))) return PyFloat_FromDouble(real);
  if (succeeded(api, api.read_string(info, name, nullptr, &size))) {
    std::string text(size, '\0');  // including the NUL at its end
    if (succeeded(api, api.read_string(info, name, text.data(), &size)))
      return text_of(text.data(), size > 0 ? size - 1 : 0);
  }
  ort::Allocator* allocator = nullptr;
  ort::Value* value = nullptr;
  if (succeeded(api, api.allocator(&allocator)) &&
      succeeded(api, api.read_tensor(info, name, allocator, &value))) {
    const std::unique_ptr<ort::Value, void (*)(ort::Value*)> owner(value, api.release_value);
    return tensor_of(api, value);
  }
  if (!succeeded(api, api.read_ints(info, name, nullptr, &size))) return nullptr;  // no such attribute
  if (size > 0) {  // 0 for any other kind of attribute
    std::vector<int64_t> all(size);
    return !succeeded(api, api.read_ints(info, name, all.data(), &size))
               ? nullptr
               : list_of(size, [&](size_t i) { return PyLong_FromLongLong(all[i]); });
  }
  if (!succeeded(api, api.read_floats(info, name, nullptr, &size))) return nullptr;
  if (size == 0) return PyTuple_New(0);  // an empty list, or not a list of numbers
  std::vector<float> all(size);
  if (size > 0 && !succeeded(api, api.read_floats(info, name, all.data(), &size))) return nullptr;
  return list_of(size, [&](size_t i) { return PyFloat_FromDouble(all[i]); });
}

}  // namespace

PyObject* onnx_attributes(const Api& api, const Info* info, const std::vector<std::string>& names) {
  PyObject* attributes = PyDict_New();
  for (size_t i = 0; attributes != nullptr && i < names.size(); ++i) {
    PyObject* value = read(api, info, names[i].c_str());
    const bool failed = value == nullptr ? PyErr_Occurred() != nullptr
                                         : PyDict_SetItemString(attributes, names[i].c_str(), value) < 0;
    Py_XDECREF(value);
    if (failed) Py_CLEAR(attributes);
  }
  return attributes;
}

}  // namespace polyop
