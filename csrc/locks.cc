#include "locks.h"

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace polyop {

namespace {

ShortLock*& first() {
  static ShortLock* lock = nullptr;
  return lock;
}

constexpr size_t kShared = 16;
ShortLock shared[kShared];

}  // namespace

ShortLock::ShortLock() : next_(first()) {
  if (next_ == nullptr) pthread_atfork(before_fork, after_fork, in_child);
  first() = this;
}

ShortLock& ShortLock::of(const void* object) {
  return shared[(reinterpret_cast<uintptr_t>(object) >> 6) % kShared];
}

void ShortLock::before_fork() {
  for (ShortLock* lock = first(); lock != nullptr; lock = lock->next_) lock->lock();
}

void ShortLock::after_fork() {
  for (ShortLock* lock = first(); lock != nullptr; lock = lock->next_) lock->unlock();
}

void ShortLock::in_child() {
  for (ShortLock* lock = first(); lock != nullptr; lock = lock->next_) {
    pthread_mutex_init(&lock->mutex_, nullptr);
  }
}

bool Gate::enter() {
  const std::lock_guard<ShortLock> held(lock_);
  inside_ += open_ ? 1 : 0;
  return open_;
}

void Gate::leave() {
  const std::lock_guard<ShortLock> held(lock_);
  if (--inside_ == 0 && !open_) empty_.notify_all();
}

void Gate::open() {
  const std::lock_guard<ShortLock> held(lock_);
  open_ = true;
}

void Gate::close() {
  std::unique_lock<ShortLock> held(lock_);
  open_ = false;
  empty_.wait(held, [this] { return inside_ == 0; });
}

}  // namespace polyop
