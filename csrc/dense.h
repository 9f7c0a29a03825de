// Dense copies of the small strided tensors of a call, for kernels that take dense memory.
#pragma once

#include "launch.h"
#include "small.h"

namespace polyop {

// The copies of one call. They live as long as this object.
class DenseCopies {
 public:
  DenseCopies() = default;
  DenseCopies(const DenseCopies&) = delete;
  DenseCopies& operator=(const DenseCopies&) = delete;
  ~DenseCopies();

  // Copies the data of a strided view, and makes the view one of the copy. False: the framework must copy it,
  // which is as fast for a large tensor, and does not hold Python's lock. Also false for one on a device, and
  // without memory.
  bool make_dense(View* view);

 private:
  Small<void*, 4> blocks_;
};

}  // namespace polyop
