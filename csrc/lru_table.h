// A table by keys of words that holds a bounded number of values: the least recently used ones are dropped.
//
// The most recently used entry is compared first, so a program that repeats one call computes no hash. Other
// keys are found by hash, however many there are. Whoever uses it brings the lock.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "small.h"

namespace polyop {

using Key = Small<uint64_t, 64>;

// How much a table of prepared calls may hold. A usual entry weighs 1 and takes one or two kilobytes. What an
// author's kernel keeps for itself has no known size, so an entry with such data weighs kDataWeight.
constexpr uint32_t kTableWeight = 8192, kDataWeight = 64;

template <typename Value>
class LruTable {
 public:
  // Returns the value of a key, which is the most recently used one from now on; null if there is none. The
  // pointer is valid until the next add() or take().
  Value* find(const Key& key) {
    if (newest_ != kNone && entries_[newest_].is(key)) return &entries_[newest_].value;
    const uint32_t entry = lookup(key, hash_of(key));
    if (entry == kNone) return nullptr;
    unlink(entry);
    link(entry);
    return &entries_[entry].value;
  }

  // Stores a value under a key, in place of an older value. Returns what had to go. The caller destroys it
  // when that can do no harm: a destructor may run Python code that uses this table, or need a lock.
  std::vector<Value> add(const Key& key, Value value, uint32_t weight = 1) {
    std::vector<Value> dropped;
    const uint64_t hash = hash_of(key);
    const uint32_t old = lookup(key, hash);
    if (old != kNone) dropped.push_back(remove(old));
    while (newest_ != kNone && weight_ + weight > kTableWeight) dropped.push_back(remove(oldest_));
    if (free_ == kNone) entries_.emplace_back();  // may throw: nothing has been linked yet
    const uint32_t entry = free_ == kNone ? static_cast<uint32_t>(entries_.size() - 1) : free_;
    entries_[entry].key.assign(key.data(), key.data() + key.size());
    if (buckets_.size() < entries_.size()) rehash();
    if (free_ != kNone) free_ = entries_[entry].next;
    entries_[entry].hash = hash;
    entries_[entry].value = std::move(value);
    entries_[entry].weight = weight;
    weight_ += weight;
    ++size_;
    chain(entry);
    link(entry);
    return dropped;
  }

  // Empties the table and returns its values.
  std::vector<Value> take() {
    std::vector<Value> values;
    values.reserve(size_);
    for (uint32_t entry = newest_; entry != kNone; entry = entries_[entry].older) {
      values.push_back(std::move(entries_[entry].value));
    }
    *this = LruTable();
    return values;
  }

  template <typename F>
  int each(F visit) {
    for (uint32_t entry = newest_; entry != kNone; entry = entries_[entry].older) {
      const int stop = visit(entries_[entry].value);
      if (stop != 0) return stop;
    }
    return 0;
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    std::vector<uint64_t> key;
    uint64_t hash = 0;
    Value value{};
    uint32_t weight = 0;
    uint32_t next = kNone;  // in the same bucket, or the next free entry
    uint32_t newer = kNone, older = kNone;

    bool is(const Key& other) const {
      return key.size() == other.size() &&
             std::memcmp(key.data(), other.data(), key.size() * sizeof(uint64_t)) == 0;
    }
  };

  static uint64_t hash_of(const Key& key) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over words; the shift brings high bits down to the buckets
    for (size_t i = 0; i < key.size(); ++i) {
      hash = (hash ^ key[i]) * 0x100000001b3;
      hash ^= hash >> 29;
    }
    return hash;
  }

  uint32_t& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  uint32_t lookup(const Key& key, uint64_t hash) {
    if (buckets_.empty()) return kNone;
    uint32_t entry = bucket(hash);
    while (entry != kNone && (entries_[entry].hash != hash || !entries_[entry].is(key))) {
      entry = entries_[entry].next;
    }
    return entry;
  }

  void chain(uint32_t entry) {
    uint32_t& first = bucket(entries_[entry].hash);
    entries_[entry].next = first;
    first = entry;
  }

  void rehash() {
    std::vector<uint32_t> larger(buckets_.empty() ? 8 : buckets_.size() * 2, kNone);
    buckets_.swap(larger);
    for (uint32_t entry = newest_; entry != kNone; entry = entries_[entry].older) chain(entry);
  }

  void link(uint32_t entry) {
    entries_[entry].newer = kNone;
    entries_[entry].older = newest_;
    (newest_ == kNone ? oldest_ : entries_[newest_].newer) = entry;
    newest_ = entry;
  }

  void unlink(uint32_t entry) {
    const uint32_t newer = entries_[entry].newer, older = entries_[entry].older;
    (newer == kNone ? newest_ : entries_[newer].older) = older;
    (older == kNone ? oldest_ : entries_[older].newer) = newer;
  }

  Value remove(uint32_t entry) {
    unlink(entry);
    uint32_t* link = &bucket(entries_[entry].hash);
    while (*link != entry) link = &entries_[*link].next;
    *link = entries_[entry].next;
    entries_[entry].next = free_;
    free_ = entry;
    weight_ -= entries_[entry].weight;
    --size_;
    return std::exchange(entries_[entry].value, Value{});
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> buckets_;  // a power of two of them, at least one for each entry
  uint32_t newest_ = kNone, oldest_ = kNone, free_ = kNone;
  uint32_t weight_ = 0;
  size_t size_ = 0;
};

}  // namespace polyop
