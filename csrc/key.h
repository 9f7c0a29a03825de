// The key of a prepared kernel: dtypes, devices and sizes of the tensors, values of the attributes.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "launch.h"
#include "small.h"

namespace polyop {

using Key = Small<uint64_t, 64>;

enum class Tag : uint64_t { kTensor = 1, kNone, kBool, kInt, kFloat, kText, kList, kEnd };

void add_tensor(Key& key, const View& view);

// Adds an attribute's value. False (no Python error) when its type has no place in a key, or it
// is a list more than two deep (one that holds itself has no end).
bool add_value(Key& key, PyObject* value, int depth = 0);

inline void add_tag(Key& key, Tag tag) { key.push(static_cast<uint64_t>(tag)); }

// Prepared kernels by key: few entries, the last hit looked at first, the oldest replaced.
class Cache {
 public:
  static constexpr size_t kEntries = 128;

  // The prepared kernel and the object that keeps it alive (borrowed), or nulls.
  struct Found {
    const Launch* launch;
    PyObject* owner;
  };
  Found find(const Key& key);
  // Takes a new reference to `owner`, which keeps `launch` alive.
  void add(const Key& key, const Launch* launch, PyObject* owner);
  void clear();
  int visit(visitproc visit, void* arg);
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<uint64_t> key;
    uint64_t hash;
    const Launch* launch;
    PyObject* owner;
  };
  std::vector<Entry> entries_;
  size_t last_ = 0;
  size_t oldest_ = 0;
};

}  // namespace polyop
