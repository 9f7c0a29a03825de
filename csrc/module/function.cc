#include "function.h"

#include <stdexcept>

#include "../python_lock.h"

namespace polyop::module {

std::shared_ptr<const Function> Function::make(const polyop_function* entry, const std::string& kinds,
                                               PyObject* values) {
  auto function = std::make_shared<Function>();
  function->entry = entry;
  function->kinds = kinds;
  for (size_t i = 0; i < kinds.size(); ++i) {
    polyop_value value{};
    if (!function->convert(PyTuple_GET_ITEM(values, static_cast<Py_ssize_t>(i)), &value)) return nullptr;
    function->values.push_back(value);
  }
  return function;
}

bool Function::convert(PyObject* value, polyop_value* result, int depth) {
  if (value == Py_None) return true;
  if (PyBool_Check(value)) {
    result->kind = POLYOP_VALUE_BOOL;
    result->as.integer = value == Py_True ? 1 : 0;
  } else if (PyLong_Check(value)) {
    result->kind = POLYOP_VALUE_INT;
    result->as.integer = PyLong_AsLongLong(value);
    return result->as.integer != -1 || !PyErr_Occurred();
  } else if (PyFloat_Check(value)) {
    result->kind = POLYOP_VALUE_FLOAT;
    result->as.real = PyFloat_AS_DOUBLE(value);
  } else if (PyUnicode_Check(value)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) return false;
    texts_.emplace_back(text, static_cast<size_t>(size));
    result->kind = POLYOP_VALUE_STRING;
    result->count = texts_.back().size();
    result->as.text = texts_.back().c_str();
  } else if (PyTuple_Check(value) && depth < 3) {
    lists_.emplace_back(static_cast<size_t>(PyTuple_GET_SIZE(value)));
    std::vector<polyop_value>& items = lists_.back();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!convert(PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(i)), &items[i], depth + 1)) return false;
    }
    result->kind = POLYOP_VALUE_LIST;
    result->count = items.size();
    result->as.items = items.data();
  } else {
    PyErr_Format(PyExc_TypeError, "a %s cannot be passed to a C++ module", Py_TYPE(value)->tp_name);
    return false;
  }
  return true;
}

namespace {

// The arguments as polyop_value. It owns their lists.
struct Arguments {
  Small<polyop_value, 12> values;
  std::vector<std::unique_ptr<std::vector<polyop_value>>> lists;
  size_t next = 0;

  polyop_value tensor(const std::vector<Ref>& tensors) {
    const Ref& one = tensors.at(next++);
    return one ? value_of(one.get()) : polyop_value{};
  }

  polyop_value list(const std::vector<Ref>& tensors, int64_t count) {
    lists.push_back(std::make_unique<std::vector<polyop_value>>());
    std::vector<polyop_value>& items = *lists.back();
    for (int64_t i = 0; i < count; ++i) items.push_back(tensor(tensors));
    return list_value(items);
  }

  static polyop_value list_value(std::vector<polyop_value>& items) {
    polyop_value value{};
    value.kind = POLYOP_VALUE_LIST;
    value.count = items.size();
    value.as.items = items.data();
    return value;
  }

  Arguments(const Function& function, const std::vector<Ref>& tensors) {
    for (size_t i = 0; i < function.kinds.size(); ++i) {
      polyop_value value = function.values[i];
      const auto pass = static_cast<Pass>(function.kinds[i]);
      if (pass == Pass::kTensor) {
        value = tensor(tensors);
      } else if (pass == Pass::kList && value.kind == POLYOP_VALUE_INT) {
        value = list(tensors, value.as.integer);
      } else if (pass == Pass::kList) {
        ++next;
      } else if (pass == Pass::kNested && value.kind == POLYOP_VALUE_LIST) {
        auto rows = std::make_unique<std::vector<polyop_value>>();
        for (size_t k = 0; k < value.count; ++k) rows->push_back(list(tensors, value.as.items[k].as.integer));
        lists.push_back(std::move(rows));
        value = list_value(*lists.back());
      }
      values.push(value);
    }
  }
};

void release_all(const polyop_value& value) {
  if (value.kind == POLYOP_VALUE_TENSOR && value.as.tensor != nullptr) release(value.as.tensor);
  for (size_t i = 0; value.kind == POLYOP_VALUE_LIST && i < value.count; ++i) release_all(value.as.items[i]);
}

void read_result(const polyop_value& value, Result* result) {
  if (value.kind == POLYOP_VALUE_NONE) return;
  if (value.kind == POLYOP_VALUE_TENSOR) {
    if (value.as.tensor == nullptr) throw std::runtime_error("the function returned an undefined tensor");
    result->form = 't';
    result->tensors.emplace_back(as_tensor(value.as.tensor));
    return;
  }
  bool tensors = value.kind == POLYOP_VALUE_LIST;
  for (size_t i = 0; tensors && i < value.count; ++i) {
    tensors = value.as.items[i].kind == POLYOP_VALUE_TENSOR && value.as.items[i].as.tensor != nullptr;
  }
  if (!tensors) {
    result->form = 'v';
    result->value = to_python(value, [](polyop_tensor*) -> PyObject* {
      PyErr_SetString(PyExc_RuntimeError, "a list of tensors and other values cannot be returned");
      return nullptr;
    });
    if (result->value == nullptr) {
      PyErr_Clear();
      release_all(value);
      throw std::runtime_error("the function returned undefined tensors, or tensors among other values");
    }
    return;
  }
  result->form = 'l';
  for (size_t i = 0; i < value.count; ++i)
    result->tensors.emplace_back(as_tensor(value.as.items[i].as.tensor));
}

}  // namespace

Result call(const Function& function, const std::vector<Ref>& tensors) {
  Arguments arguments(function, tensors);
  polyop_value value{};
  const polyop_function* entry = function.entry;
  const int code = taking_lock([&] {  // the function may call Python
    return entry->call(entry, arguments.values.data(), arguments.values.size(), &value,
                       [](const char* text) { set_failure(text); });
  });
  if (code != 0) throw std::runtime_error(failure());
  Result result;
  try {
    read_result(value, &result);
  } catch (...) {
    entry->free_result(&value);
    throw;
  }
  entry->free_result(&value);
  Frame::current().copy_back(&result.tensors);
  return result;
}

}  // namespace polyop::module
