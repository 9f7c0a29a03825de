// The locks of the native core. A child of fork() finds all of them free, and what they guard whole.
#pragma once

#include <pthread.h>

#include <condition_variable>

namespace polyop {

// Held for a few statements that touch memory alone: they wait for nothing, and take no other lock. So fork()
// can wait for the threads that hold one. Its objects are
// global: they are made before there are other threads, and exist as long as the process.
class ShortLock {
 public:
  ShortLock();
  ShortLock(const ShortLock&) = delete;
  ShortLock& operator=(const ShortLock&) = delete;
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

  // The lock of an object that does not exist as long as the process; others may share it.
  static ShortLock& of(const void* object);

 private:
  static void before_fork();
  static void after_fork();
  static void in_child();
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  ShortLock* next_;
};

// Counts the threads of runtimes that are inside Python. Closing it, at Python's exit, waits for them: a
// thread that Python stops while it has C++ frames takes the process down.
class Gate {
 public:
  explicit Gate(bool open) : open_(open) {}
  bool enter();  // false: the gate is closed
  void leave();
  void open();
  void close();
  // A gate for a child of fork(), which has none of the threads inside.
  Gate* without_threads() const { return new Gate(open_); }

 private:
  ShortLock lock_;
  std::condition_variable_any empty_;
  int inside_ = 0;
  bool open_;
};

}  // namespace polyop
