#include "trace.h"

#include "tensor.h"

namespace polyop::module {

Trace::~Trace() {
  for (Step& step : steps) Py_XDECREF(step.arguments);
}

void Trace::add(const char* kind, const std::string& name, PyObject* arguments, std::vector<int> outputs) {
  if (arguments == nullptr) PyErr_Clear();
  steps.push_back({kind, name, arguments, std::move(outputs)});
}

PyObject* Trace::to_python() const {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(steps.size()));
  for (size_t i = 0; tuple != nullptr && i < steps.size(); ++i) {
    const Step& step = steps[i];
    PyObject* outputs = PyTuple_New(static_cast<Py_ssize_t>(step.outputs.size()));
    for (size_t k = 0; outputs != nullptr && k < step.outputs.size(); ++k) {
      PyTuple_SET_ITEM(outputs, static_cast<Py_ssize_t>(k), PyLong_FromLong(step.outputs[k]));
    }
    PyObject* row = Py_BuildValue("(ssON)", step.kind.c_str(), step.name.c_str(),
                                  step.arguments == nullptr ? Py_None : step.arguments, outputs);
    if (row == nullptr) Py_CLEAR(tuple);
    if (tuple != nullptr) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), row);
  }
  return tuple;
}

PyObject* to_python(const polyop_value* values, size_t count, PyObject* (*tensor)(polyop_tensor*)) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; tuple != nullptr && i < count; ++i) {
    PyObject* object = to_python(values[i], tensor);
    if (object == nullptr) {
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), object);
    }
  }
  return tuple;
}

PyObject* to_python(const polyop_value& value, PyObject* (*tensor)(polyop_tensor*)) {
  switch (value.kind) {
    case POLYOP_VALUE_BOOL:
      return PyBool_FromLong(value.as.integer != 0);
    case POLYOP_VALUE_INT:
      return PyLong_FromLongLong(value.as.integer);
    case POLYOP_VALUE_FLOAT:
      return PyFloat_FromDouble(value.as.real);
    case POLYOP_VALUE_STRING:
      return PyUnicode_DecodeUTF8(value.as.text, static_cast<Py_ssize_t>(value.count), "replace");
    case POLYOP_VALUE_TENSOR:
      if (value.as.tensor != nullptr) return tensor(value.as.tensor);
      break;
    case POLYOP_VALUE_LIST:
      return to_python(value.as.items, value.count, tensor);
    default:
      break;
  }
  Py_RETURN_NONE;
}

PyObject* tensor_id(polyop_tensor* tensor) { return Py_BuildValue("(si)", "tensor", as_tensor(tensor)->id); }

}  // namespace polyop::module
