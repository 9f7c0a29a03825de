// Turns the arguments of a call into the parameters of the kernel and the key of the prepared kernel.
#pragma once

#include <Python.h>

#include "dense.h"
#include "hosts/host.h"
#include "key.h"
#include "rows.h"

namespace polyop {

// The instance of polyop._core.Call.
struct CallObject {
  PyObject base;
  vectorcallfunc vectorcall;
  Cache* cache;
  Cache* plans;  // of gradients, by the same keys; see planned.h
  // str, one letter per argument: t tensor, l list of tensors, a attribute; i, f: a number (int, float) whose
  // value decides nothing as far as is known, so that it is no part of the key
  PyObject* kinds;
  PyObject* names;          // tuple of str, one per argument: what kernels call it
  PyObject* defaults;       // tuple, one per argument; `missing` where the argument has no default
  PyObject* missing;        // the sentinel for "no default"
  PyObject* differentiate;  // called when gradients are required; null or None: the slow path
  PyObject* watched;        // what the kernel was defined with; see changed() in call.cc; may be null
  PyObject* weakrefs;
  Py_ssize_t positional;  // how many arguments may be given by position
  unsigned generation;    // counts changes; a kernel prepared before a change is not cached after it
  unsigned definition;    // counts those changes that change the definition
  char plain;             // whether the fast path is allowed
  char pack;              // how outputs are returned to the caller: a Pack
  char inner_pack;        // how outputs are returned to the framework's dispatcher: a Pack
  char module;            // whether the kernel is a function of a C++ module
  char reads_rows;        // whether a kernel can be compiled for tensors in rows; see rows.h
};

// How outputs are returned. kPlain: one output as itself, several as a tuple.
enum class Pack : char { kPlain, kTuple, kList };

// kDifferentiate: ready, and a gradient is required.
enum class GatherResult { kReady, kSlow, kDifferentiate };

// A tensor of the caller; `object` is null for an absent optional tensor.
struct BorrowedTensor {
  PyObject* object;
  View view;
};

// The arguments of one call, on their way to the kernel.
struct Call {
  const Host* host = nullptr;
  PyObject* kinds = nullptr;   // the operator's when the call began: another thread may replace them
  bool guarded = false;        // above the framework's dispatcher: the guards are checked
  bool strided = false;        // a module's call: tensors of any layout go to `borrowed`, not `parameters`
  bool copies = false;         // strided tensors are copied: the kernel writes none of its arguments
  bool find_rows = false;      // tensors in rows are looked for: a kernel may read them where they lie
  bool differentiate = false;  // a tensor requires a gradient
  bool has_tensor = false;
  View first{};  // outputs are allocated where the first tensor is
  Parameters parameters;
  DenseCopies dense;
  Small<Rows, 4> rows;  // of tensors that are copied too, unless the kernel reads them where they lie
  Key key;
  Small<BorrowedTensor, 8> borrowed;  // only when `strided`
  Small<PyObject*, 16> values;        // one per argument, borrowed references; a list becomes a tuple
  Small<PyObject*, 4> held;           // owns those tuples, as another thread may change a list, and names
  Small<Number, 8> numbers;           // attributes that are no part of the key

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    for (PyObject* item : held) Py_DECREF(item);
    Py_XDECREF(kinds);
  }

  GatherResult tensor(PyObject* value) {
    if (value == Py_None) {
      if (strided) {
        borrowed.push({nullptr, View{}});
      } else {
        parameters.add_absent();
      }
      add_tag(key, Tag::kNone);
      return GatherResult::kReady;
    }
    if (!host->owns(Py_TYPE(value))) return GatherResult::kSlow;
    View view{};
    const BorrowResult result = host->borrow(value, guarded, strided || copies, &view);
    if (result == BorrowResult::kOther) return GatherResult::kSlow;
    if (!strided && view.strides != nullptr && !dense.plan(view, parameters.data.size())) {
      return GatherResult::kSlow;
    }
    Rows in_rows;
    const bool has_rows = find_rows && view.strides != nullptr && polyop::find_rows(view, &in_rows);
    if (has_rows) {
      in_rows.parameter = parameters.data.size();
      rows.push(in_rows);
    }
    if (result == BorrowResult::kDifferentiated) differentiate = true;
    if (!has_tensor) first = view;
    if (has_tensor && (view.device != first.device || view.device_id != first.device_id))
      return GatherResult::kSlow;
    has_tensor = true;
    if (strided) {
      borrowed.push({value, view});
    } else {
      parameters.add(view);
    }
    add_tensor(key, view);
    if (has_rows) add_rows(key, in_rows);
    return GatherResult::kReady;
  }

  // Adds a number that is no part of the key. False for another value, such as None: that is a part of it.
  bool number(PyObject* value, char kind, PyObject* name) {
    Number number{nullptr, kind == 'f' ? POLYOP_FLOAT : POLYOP_INT, 0, 0};
    if (kind == 'f' && PyFloat_CheckExact(value)) {
      number.real = PyFloat_AS_DOUBLE(value);
    } else if (PyLong_CheckExact(value)) {
      constexpr int64_t kMost = int64_t{1} << 42;  // proofs hold up to it (loops/analysis/sizes.py)
      int overflow = 0;
      number.integer = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow != 0 || number.integer > kMost || number.integer < -kMost) return false;
      number.real = static_cast<double>(number.integer);
    } else {
      return false;
    }
    number.name = PyUnicode_AsUTF8(name);
    if (number.name == nullptr) {
      PyErr_Clear();
      return false;
    }
    Py_INCREF(name);
    held.push(name);
    numbers.push(number);
    add_tag(key, Tag::kNumber);
    return true;
  }

  // Stores an argument in `values` and returns it: the value itself, or a tuple of a list's items.
  // Null, with a Python error, when there is no memory.
  PyObject* freeze(PyObject* value) {
    if (PyList_CheckExact(value)) {
      value = PyList_AsTuple(value);
      if (value == nullptr) return nullptr;
      held.push(value);
    }
    values.push(value);
    return value;
  }

  GatherResult tensors(PyObject* value) {
    if (value == Py_None && strided) return tensor(value);  // one absent tensor stands for the list
    if (!PyTuple_CheckExact(value)) return GatherResult::kSlow;
    add_tag(key, Tag::kList);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      const GatherResult result = tensor(PyTuple_GET_ITEM(value, i));
      if (result != GatherResult::kReady) return result;
    }
    add_tag(key, Tag::kEnd);
    return GatherResult::kReady;
  }
};

// Borrows the tensors and reads the attributes. kSlow: only Python can handle these arguments.
GatherResult gather(CallObject* self, PyObject* const* args, Py_ssize_t count, Call* call);

}  // namespace polyop
