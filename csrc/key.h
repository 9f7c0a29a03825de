// The key of a prepared kernel: dtypes, devices and sizes of the tensors, values of the attributes.
#pragma once

#include <Python.h>

#include <cstdint>

#include "launch.h"
#include "lru_table.h"

namespace polyop {

// kNumber stands for a number whose value is passed on in each call.
enum class Tag : uint64_t { kTensor = 1, kNone, kBool, kInt, kFloat, kText, kList, kEnd, kRows, kNumber };

// Adds dtype, device and sizes of a tensor.
void add_tensor(Key& key, const View& view);

// Adds the value of an attribute. Returns false, without a Python error, when the value cannot be part of a
// key: a value of another type (subclasses included), an integer beyond 64 bits, a string with lone
// surrogates (it has no UTF-8), or lists nested more than two deep (a list that contains itself never ends).
// What was added before the value was refused stays in the key.
bool add_attribute(Key& key, PyObject* value, int depth = 0);

inline void add_tag(Key& key, Tag tag) { key.push(static_cast<uint64_t>(tag)); }

// Prepared kernels by key. Guarded by Python's lock.
class Cache {
 public:
  // A prepared kernel and the object that keeps it alive (borrowed); both null when there is none.
  struct Prepared {
    const Launch* launch;
    PyObject* owner;
  };
  Prepared find(const Key& key) {
    const Prepared* found = table_.find(key);
    return found == nullptr ? Prepared{nullptr, nullptr} : *found;
  }
  // Takes a new reference to `owner`, which keeps `launch` alive.
  void add(const Key& key, const Launch* launch, PyObject* owner);
  void clear();
  int visit(visitproc visit, void* arg);
  size_t size() const { return table_.size(); }

 private:
  LruTable<Prepared> table_;
};

}  // namespace polyop
