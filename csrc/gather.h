// From the arguments of a call to what the kernel is passed, and the key that it is prepared under.
#pragma once

#include <Python.h>

#include "hosts/host.h"
#include "key.h"

namespace polyop {

// The instance of polyop._core.Call.
struct CallObject {
  PyObject base;
  vectorcallfunc vectorcall;
  Cache* cache;
  PyObject* kinds;          // str, one letter per argument: t tensor, l list of tensors, a attribute
  PyObject* defaults;       // tuple, one per argument; the Missing object where there is none
  PyObject* missing;        // the Missing object
  PyObject* differentiate;  // called instead when gradients are wanted; null or None: the slow path
  PyObject* weakrefs;
  Py_ssize_t positional;  // how many arguments may be given by position
  unsigned generation;    // counts changes: what was prepared before one is not kept after it
  unsigned definition;    // counts the changes of the definition among them
  char plain;             // whether the fast path may be taken at all
  char pack;              // how outputs are returned: a Pack
  char inner_pack;        // likewise, to the framework's dispatcher
  char module;            // whether the kernel is a function of a C++ module
};

// How outputs are returned: one as itself; always a tuple; always a list.
enum class Pack : char { kPlain, kTuple, kList };

enum class Gathered { kReady, kSlow, kDifferentiate };

// A tensor of the caller's; no object where an optional one was not given.
struct Borrowing {
  PyObject* object;
  View view;
};

// The arguments of one call, on their way to the kernel.
struct Call {
  const Host* host = nullptr;
  bool guarded = false;
  bool strided = false;  // a module takes tensors of any layout and the objects, in place of `parameters`
  bool differentiate = false;
  bool any = false;
  View first{};  // outputs are allocated where the first tensor is
  Parameters parameters;
  Key key;
  Small<Borrowing, 8> borrowed;  // where `strided`
  Small<PyObject*, 16> values;   // one per argument, borrowed; a list is replaced by a tuple of it
  Small<PyObject*, 4> held;      // those tuples: another thread may change a list while the kernel runs

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    for (PyObject* item : held) Py_DECREF(item);
  }

  Gathered tensor(PyObject* value) {
    if (value == Py_None) {
      if (strided) {
        borrowed.push({nullptr, View{}});
      } else {
        parameters.add_absent();
      }
      add_tag(key, Tag::kNone);
      return Gathered::kReady;
    }
    if (!host->owns(Py_TYPE(value))) return Gathered::kSlow;
    View view{};
    const Borrowed how = host->borrow(value, guarded, strided, &view);
    if (how == Borrowed::kOther) return Gathered::kSlow;
    if (how == Borrowed::kDifferentiated) differentiate = true;
    if (!any) first = view;
    if (any && (view.device != first.device || view.device_id != first.device_id)) return Gathered::kSlow;
    any = true;
    if (strided) {
      borrowed.push({value, view});
    } else {
      parameters.add(view);
    }
    add_tensor(key, view);
    return Gathered::kReady;
  }

  // The value itself, or a tuple of a list's items; null when there is no memory for it.
  PyObject* fixed(PyObject* value) {
    if (PyList_CheckExact(value)) {
      value = PyList_AsTuple(value);
      if (value == nullptr) return nullptr;
      held.push(value);
    }
    values.push(value);
    return value;
  }

  Gathered tensors(PyObject* value) {
    if (value == Py_None && strided) return tensor(value);  // one absent tensor stands for the list
    if (!PyTuple_CheckExact(value)) return Gathered::kSlow;
    add_tag(key, Tag::kList);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      const Gathered how = tensor(PyTuple_GET_ITEM(value, i));
      if (how != Gathered::kReady) return how;
    }
    add_tag(key, Tag::kEnd);
    return Gathered::kReady;
  }
};

// Borrow the tensors and take the attributes; kSlow when only Python can deal with the arguments.
Gathered gather(CallObject* self, PyObject* const* args, Py_ssize_t count, Call* call);

}  // namespace polyop
