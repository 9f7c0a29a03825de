#include "key.h"

#include <cstring>

namespace polyop {

namespace {

bool add_string(Key& key, PyObject* value) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(value, &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    return false;
  }
  add_tag(key, Tag::kText);
  key.push(static_cast<uint64_t>(size));
  for (Py_ssize_t offset = 0; offset < size; offset += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + offset, static_cast<size_t>(size - offset < 8 ? size - offset : 8));
    key.push(word);
  }
  return true;
}

}  // namespace

void add_tensor(Key& key, const View& view) {
  key.push(static_cast<uint64_t>(Tag::kTensor) | static_cast<uint64_t>(view.dtype) << 8 |
           static_cast<uint64_t>(view.ndim) << 16 | static_cast<uint64_t>(view.device) << 32 |
           static_cast<uint64_t>(view.device_id) << 48);
  for (int32_t i = 0; i < view.ndim; ++i) key.push(static_cast<uint64_t>(view.shape[i]));
}

bool add_attribute(Key& key, PyObject* value, int depth) {
  if (value == Py_None) {
    add_tag(key, Tag::kNone);
    return true;
  }
  if (PyBool_Check(value)) {
    add_tag(key, Tag::kBool);
    key.push(value == Py_True ? 1 : 0);
    return true;
  }
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    add_tag(key, Tag::kInt);
    key.push(static_cast<uint64_t>(number));
    return true;
  }
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    add_tag(key, Tag::kFloat);
    key.push(bits);
    return true;
  }
  if (PyUnicode_CheckExact(value)) return add_string(key, value);
  if (depth < 2 && (PyTuple_CheckExact(value) || PyList_CheckExact(value))) {
    add_tag(key, Tag::kList);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      if (!add_attribute(key, PySequence_Fast_GET_ITEM(value, i), depth + 1)) return false;
    }
    add_tag(key, Tag::kEnd);
    return true;
  }
  return false;
}

void Cache::add(const Key& key, const Launch* launch, PyObject* owner) {
  const uint32_t weight = launch == nullptr ? 1 : launch->weight();
  const std::vector<Prepared> dropped = table_.add(key, {launch, owner}, weight);
  Py_INCREF(owner);
  for (const Prepared& entry : dropped) Py_DECREF(entry.owner);
}

void Cache::clear() {
  for (const Prepared& entry : table_.take()) Py_DECREF(entry.owner);
}

int Cache::visit(visitproc visit, void* arg) {
  return table_.each([&](const Prepared& entry) {
    Py_VISIT(entry.owner);
    return 0;
  });
}

}  // namespace polyop
