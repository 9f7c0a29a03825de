/* How many threads and blocks the host of a device's kernels launches; included by device.h and opencl.h. */
#ifndef POLYOP_LOOPS_LAUNCH_H
#define POLYOP_LOOPS_LAUNCH_H
#include <stdint.h>

/* The number of blocks for `count` rows or elements, `each` per block: at least one, at most `most`. Kernels
 * stride over the rest. */
static inline unsigned polyop_blocks(int64_t count, int64_t each, int64_t most) {
  const int64_t needed = (count + each - 1) / each;
  return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}
/* The smallest power of two that covers a range, at most 256. */
static inline int polyop_cover(int64_t range) {
  int width = 1;
  while (width < 256 && width < range) width *= 2;
  return width;
}
/* The number of threads that share a row: a warp for short rows. */
static inline int polyop_width(int64_t length) {
  return length <= 512 ? 32 : length <= 4096 ? 128 : POLYOP_WIDEST;
}

#endif
