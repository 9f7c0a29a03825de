// Rehearsal: runs polyop's CPU version of an operator, in the Python of this process.
//
// Python's functions are looked up by name, so that a library does not link Python.
#ifndef POLYOP_NPU_REHEARSAL_H
#define POLYOP_NPU_REHEARSAL_H

#include <cxxabi.h>
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <vector>

#include "kinds.h"

namespace polyop::npu {

// One argument. Python has a structure with the same fields (polyop.providers.aclnn.exec_npu).
struct Value {
  int64_t kind = 0;   // a Kind up to COMPLEX
  int64_t whole = 0;  // an integer or a bool
  double number = 0;  // a float, or the real part of a complex number
  double imaginary = 0;
  const void* data = nullptr;  // a tensor's first element, a text, a list's values
  int64_t count = 0;           // a tensor's dimensions, a text's bytes, a list's values
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;  // in elements
  const char* dtype = nullptr;       // polyop's name; PyTorch's in C++ for one that polyop lacks
};

inline const char* dtype_name(at::ScalarType dtype) {
  const int32_t row = dtype_with(&DTypeRow::torch, static_cast<int32_t>(dtype));
  return row < 0 ? c10::toString(dtype) : kDTypeRows[row].name;
}

// The arguments of one call. It owns the items of lists; tensors and texts belong to the caller.
class Record {
 public:
  explicit Record(const char* name) : name_(name) {}

  template <class T>
  Value of(const T& argument) {
    constexpr Kind kind = kind_of<T>();
    static_assert(kind != Kind::OTHER,
                  "EXEC_NPU_CMD takes tensors, numbers, texts, dtypes, and lists and optionals of these");
    Value value;
    value.kind = static_cast<int64_t>(kind);
    if constexpr (kind == Kind::TENSOR) {
      return tensor(argument);
    } else if constexpr (kind == Kind::SCALAR) {
      return scalar(argument);
    } else if constexpr (kind == Kind::MAYBE) {
      return argument.has_value() ? of(*argument) : Value();
    } else if constexpr (kind == Kind::LIST) {
      std::vector<Value> items;
      for (const auto& item : argument) {
        items.push_back(of(item));
      }
      value.count = static_cast<int64_t>(items.size());
      lists_.push_back(std::move(items));
      value.data = lists_.back().data();
    } else if constexpr (kind == Kind::WHOLE || kind == Kind::TRUTH) {
      value.whole = static_cast<int64_t>(argument);
    } else if constexpr (kind == Kind::REAL) {
      value.number = argument;
    } else if constexpr (kind == Kind::DTYPE) {
      value.dtype = dtype_name(argument);
    } else if constexpr (kind == Kind::TEXT) {
      const std::string_view text(argument);
      value.data = text.data();
      value.count = static_cast<int64_t>(text.size());
    }
    return value;
  }

 private:
  Value tensor(const at::TensorBase& tensor) {
    Value value;
    if (!tensor.defined()) {
      return value;
    }
    check_plain(name_, tensor);
    if (!tensor.device().is_cpu()) {
      refuse(name_, "takes tensors of the CPU in rehearsal, but got one on " + tensor.device().str());
    }
    value.kind = static_cast<int64_t>(Kind::TENSOR);
    value.data = tensor.mutable_data_ptr();
    value.count = tensor.dim();
    value.sizes = tensor.sizes().data();
    value.strides = tensor.strides().data();
    value.dtype = dtype_name(tensor.scalar_type());
    return value;
  }

  Value scalar(const at::Scalar& scalar) {
    if (scalar.isBoolean()) {
      return of(scalar.toBool());
    }
    if (scalar.isIntegral(false)) {
      return of(scalar.toLong());
    }
    if (!scalar.isComplex()) {
      return of(scalar.toDouble());
    }
    Value value;
    value.kind = static_cast<int64_t>(Kind::COMPLEX);
    value.number = scalar.toComplexDouble().real();
    value.imaginary = scalar.toComplexDouble().imag();
    return value;
  }

  const char* name_;
  std::deque<std::vector<Value>> lists_;
};

// Runs the operator. Returns 0, or another number after writing the error to `message`.
using Run = int (*)(const char* name, const Value* values, int64_t count, char* message, int64_t room);

namespace python {

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// Returns the text of Python's error and clears it.
inline std::string problem() {
  void *type = nullptr, *value = nullptr, *trace = nullptr;
  find<void (*)(void**, void**, void**)>("PyErr_Fetch")(&type, &value, &trace);
  void* text = value != nullptr ? find<void* (*)(void*)>("PyObject_Str")(value) : nullptr;
  const char* utf8 = text != nullptr ? find<const char* (*)(void*)>("PyUnicode_AsUTF8")(text) : nullptr;
  const std::string message = utf8 != nullptr ? utf8 : "an error without a text";
  for (void* object : {text, type, value, trace}) {
    if (object != nullptr) {
      find<void (*)(void*)>("Py_DecRef")(object);
    }
  }
  return message;
}

// Takes Python's lock. When Python has ended it waits for the end of the process: Python would unwind the
// stack.
inline int lock() {
#if defined(__GLIBCXX__)
  try {
    return find<int (*)()>("PyGILState_Ensure")();
  } catch (const abi::__forced_unwind&) {
    if (find<int (*)()>("Py_IsInitialized")() != 0) {
      throw;  // the thread was cancelled by somebody else
    }
    for (;;) {
      pause();
    }
  }
#else
  return find<int (*)()>("PyGILState_Ensure")();
#endif
}

inline Run load(const char* name) {
  auto started = find<int (*)()>("Py_IsInitialized");
  if (started == nullptr || started() == 0) {
    refuse(name, "rehearsal runs in Python, and this process has none");
  }
  const int state = lock();
  void* module = find<void* (*)(const char*)>("PyImport_ImportModule")("polyop.providers.aclnn.exec_npu");
  void* address = module == nullptr
                      ? nullptr
                      : find<void* (*)(void*, const char*)>("PyObject_GetAttrString")(module, "ADDRESS");
  void* function = address == nullptr ? nullptr : find<void* (*)(void*)>("PyLong_AsVoidPtr")(address);
  const std::string error = function == nullptr ? problem() : std::string();
  find<void (*)(int)>("PyGILState_Release")(state);
  if (function == nullptr) {
    refuse(name, "rehearsal needs polyop, which cannot be imported: " + error);
  }
  return reinterpret_cast<Run>(function);
}

}  // namespace python

template <class... Arguments>
void rehearse(const char* name, const Arguments&... arguments) {
  // Two threads may both look it up at first: no lock may be held while Python runs.
  static std::atomic<Run> run{nullptr};
  if (run == nullptr) {
    run = python::load(name);
  }
  Record record(name);
  const std::vector<Value> values{record.of(arguments)...};
  std::vector<char> message(1 << 14);
  if (run.load()(name, values.data(), static_cast<int64_t>(values.size()), message.data(),
                 static_cast<int64_t>(message.size())) != 0) {
    throw std::runtime_error(message.data());
  }
}

}  // namespace polyop::npu

#endif
