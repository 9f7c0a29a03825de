// An array on the stack that moves to the heap when it must: the call path allocates nothing.
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
    if (size_ == room_) grow();
    at_[size_++] = value;
  }
  T* data() { return at_; }
  const T* data() const { return at_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return at_[i]; }
  const T& operator[](size_t i) const { return at_[i]; }
  T* begin() { return at_; }
  T* end() { return at_ + size_; }

 private:
  void grow() {
    std::unique_ptr<T[]> larger(new T[room_ * 2]);
    std::memcpy(larger.get(), at_, size_ * sizeof(T));
    room_ *= 2;
    heap_ = std::move(larger);
    at_ = heap_.get();
  }

  T inline_[N];
  T* at_ = inline_;
  size_t size_ = 0;
  size_t room_ = N;
  std::unique_ptr<T[]> heap_;
};

}  // namespace polyop
