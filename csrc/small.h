// An array that keeps its first N items in place, so that the call path rarely allocates.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace polyop {

template <typename T, size_t N>
class Small {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Small() = default;
  Small(const Small&) = delete;
  Small& operator=(const Small&) = delete;

  void push(T value) {
    if (size_ == capacity_) grow();
    items_[size_++] = value;
  }
  T* data() { return items_; }
  const T* data() const { return items_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

 private:
  void grow() {
    std::unique_ptr<T[]> larger(new T[capacity_ * 2]);
    std::memcpy(larger.get(), items_, size_ * sizeof(T));
    capacity_ *= 2;
    heap_ = std::move(larger);
    items_ = heap_.get();
  }

  T inline_[N];
  T* items_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
};

}  // namespace polyop
