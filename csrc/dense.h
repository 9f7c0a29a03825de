// Dense copies of the strided tensors of a call, for kernels that take dense memory.
#pragma once

#include "launch.h"
#include "small.h"

namespace polyop {

// Copies the elements of a strided view on the CPU, in order, to dense memory. False for elements that are no
// whole bytes, and for too many. `on_threads`: polyop's threads share a large copy; thread_count() was
// called.
bool copy_to_dense(const View& view, void* to, bool on_threads);

// The copies of one call. They live as long as this object.
class DenseCopies {
 public:
  DenseCopies() = default;
  DenseCopies(const DenseCopies&) = delete;
  DenseCopies& operator=(const DenseCopies&) = delete;
  ~DenseCopies();

  // Notes that make() shall copy a strided view, which is parameter number `parameter` of the kernel. False:
  // the framework must copy it; it is on a device, its elements are no whole bytes, or it has too many. Needs
  // Python's lock.
  bool plan(const View& view, size_t parameter);

  // Makes no copy for this parameter.
  void leave(size_t parameter);

  // Makes the planned copies, and sets `data[parameter]` to each. Python's lock is not needed. Throws
  // std::bad_alloc.
  void make(void** data);

 private:
  struct Copy {
    View view;
    size_t parameter;
    void* block;  // null until it is made
    bool left;    // no copy is made
  };
  Small<Copy, 4> copies_;
};

}  // namespace polyop
