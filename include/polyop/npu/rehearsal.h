// In rehearsal polyop's operators for the CPU run, in the Python of this process.
//
// Python's functions are found by name, so a library without a Python module links nothing of it.
#ifndef POLYOP_NPU_REHEARSAL_H
#define POLYOP_NPU_REHEARSAL_H

#include <dlfcn.h>
#include <stdint.h>

#include <atomic>
#include <deque>
#include <vector>

#include "kinds.h"

namespace polyop::npu {

// One argument as Python reads it: a structure of the same fields is there.
struct Value {
  int64_t kind = 0;   // a Kind up to COMPLEX
  int64_t whole = 0;  // a whole number, a truth value
  double number = 0;  // or the real part
  double imaginary = 0;
  const void* data = nullptr;  // a tensor's first element, a text, a list's values
  int64_t count = 0;           // a tensor's dimensions, a text's bytes, a list's values
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;  // in elements
  const char* dtype = nullptr;       // as PyTorch calls it in C++: Float
};

// The arguments of one call. It keeps lists alive; tensors and texts are the caller's.
class Record {
 public:
  explicit Record(const char* name) : name_(name) {}

  template <class T>
  Value of(const T& given) {
    constexpr Kind kind = kind_of<T>();
    static_assert(kind != Kind::OTHER,
                  "EXEC_NPU_CMD takes tensors, numbers, texts, dtypes, and lists and optionals of these");
    Value made;
    made.kind = static_cast<int64_t>(kind);
    if constexpr (kind == Kind::TENSOR) {
      return tensor(given);
    } else if constexpr (kind == Kind::SCALAR) {
      return scalar(given);
    } else if constexpr (kind == Kind::MAYBE) {
      return given.has_value() ? of(*given) : Value();
    } else if constexpr (kind == Kind::LIST) {
      std::vector<Value> items;
      for (const auto& item : given) {
        items.push_back(of(item));
      }
      made.count = static_cast<int64_t>(items.size());
      lists_.push_back(std::move(items));
      made.data = lists_.back().data();
    } else if constexpr (kind == Kind::WHOLE || kind == Kind::TRUTH) {
      made.whole = static_cast<int64_t>(given);
    } else if constexpr (kind == Kind::REAL) {
      made.number = given;
    } else if constexpr (kind == Kind::DTYPE) {
      made.dtype = c10::toString(given);
    } else if constexpr (kind == Kind::TEXT) {
      const std::string_view text(given);
      made.data = text.data();
      made.count = static_cast<int64_t>(text.size());
    }
    return made;
  }

 private:
  Value tensor(const at::TensorBase& given) {
    Value made;
    if (!given.defined()) {
      return made;
    }
    check_plain(name_, given);
    if (!given.device().is_cpu()) {
      refuse(name_, "takes tensors of the CPU in rehearsal, but got one on " + given.device().str());
    }
    made.kind = static_cast<int64_t>(Kind::TENSOR);
    made.data = given.mutable_data_ptr();
    made.count = given.dim();
    made.sizes = given.sizes().data();
    made.strides = given.strides().data();
    made.dtype = c10::toString(given.scalar_type());
    return made;
  }

  Value scalar(const at::Scalar& given) {
    if (given.isBoolean()) {
      return of(given.toBool());
    }
    if (given.isIntegral(false)) {
      return of(given.toLong());
    }
    if (!given.isComplex()) {
      return of(given.toDouble());
    }
    Value made;
    made.kind = static_cast<int64_t>(Kind::COMPLEX);
    made.number = given.toComplexDouble().real();
    made.imaginary = given.toComplexDouble().imag();
    return made;
  }

  const char* name_;
  std::deque<std::vector<Value>> lists_;
};

// Runs the operator; returns 0, or writes what is wrong.
using Run = int (*)(const char* name, const Value* values, int64_t count, char* message, int64_t room);

namespace python {

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// The text of Python's error, which is cleared.
inline std::string problem() {
  void *type = nullptr, *value = nullptr, *trace = nullptr;
  find<void (*)(void**, void**, void**)>("PyErr_Fetch")(&type, &value, &trace);
  void* text = value != nullptr ? find<void* (*)(void*)>("PyObject_Str")(value) : nullptr;
  const char* plain = text != nullptr ? find<const char* (*)(void*)>("PyUnicode_AsUTF8")(text) : nullptr;
  const std::string made = plain != nullptr ? plain : "an error without a text";
  for (void* object : {text, type, value, trace}) {
    if (object != nullptr) {
      find<void (*)(void*)>("Py_DecRef")(object);
    }
  }
  return made;
}

inline Run load(const char* name) {
  auto started = find<int (*)()>("Py_IsInitialized");
  if (started == nullptr || started() == 0) {
    refuse(name, "rehearsal runs in Python, and this process has none");
  }
  const int state = find<int (*)()>("PyGILState_Ensure")();
  void* module = find<void* (*)(const char*)>("PyImport_ImportModule")("polyop.providers.aclnn.exec_npu");
  void* address = module == nullptr
                      ? nullptr
                      : find<void* (*)(void*, const char*)>("PyObject_GetAttrString")(module, "ADDRESS");
  void* made = address == nullptr ? nullptr : find<void* (*)(void*)>("PyLong_AsVoidPtr")(address);
  const std::string wrong = made == nullptr ? problem() : std::string();
  find<void (*)(int)>("PyGILState_Release")(state);
  if (made == nullptr) {
    refuse(name, "rehearsal needs polyop, which cannot be imported: " + wrong);
  }
  return reinterpret_cast<Run>(made);
}

}  // namespace python

template <class... Arguments>
void rehearse(const char* name, const Arguments&... arguments) {
  static std::atomic<Run> run{
      nullptr};  // found twice where two threads come first: no lock is held while Python runs
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
