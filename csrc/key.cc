#include "key.h"

#include <cstring>

namespace polyop {

namespace {

uint64_t hash_of(const Key& key) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over words
  for (size_t i = 0; i < key.size(); ++i) hash = (hash ^ key[i]) * 0x100000001b3;
  return hash;
}

bool equals(const std::vector<uint64_t>& entry_key, const Key& key) {
  return entry_key.size() == key.size() &&
         std::memcmp(entry_key.data(), key.data(), key.size() * sizeof(uint64_t)) == 0;
}

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

Cache::Prepared Cache::find(const Key& key) {
  if (last_hit_ < entries_.size() && equals(entries_[last_hit_].key, key)) {
    return {entries_[last_hit_].launch, entries_[last_hit_].owner};
  }
  const uint64_t hash = hash_of(key);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].hash == hash && equals(entries_[i].key, key)) {
      last_hit_ = i;
      return {entries_[i].launch, entries_[i].owner};
    }
  }
  return {nullptr, nullptr};
}

void Cache::add(const Key& key, const Launch* launch, PyObject* owner) {
  Py_INCREF(owner);
  Entry entry{std::vector<uint64_t>(key.data(), key.data() + key.size()), hash_of(key), launch, owner};
  if (entries_.size() < kEntries) {
    last_hit_ = entries_.size();
    entries_.push_back(std::move(entry));
    return;
  }
  last_hit_ = oldest_;
  oldest_ = (oldest_ + 1) % kEntries;
  std::swap(entries_[last_hit_], entry);
  Py_DECREF(entry.owner);
}

void Cache::clear() {
  std::vector<Entry> dropped;
  dropped.swap(entries_);  // first: a destructor may run Python code that uses this cache
  last_hit_ = oldest_ = 0;
  for (Entry& entry : dropped) Py_DECREF(entry.owner);
}

int Cache::visit(visitproc visit, void* arg) {
  for (Entry& entry : entries_) Py_VISIT(entry.owner);
  return 0;
}

}  // namespace polyop
