/* The contract between polyop's threads and a kernel that runs loops on them, in C.
 *
 * A kernel includes this file and calls polyop_for(). When polyop opens the library, it sets the two hooks
 * below. In a library that something else has opened, loops run in the calling thread.
 */
#ifndef POLYOP_PARALLEL_H
#define POLYOP_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The body of a loop: runs the iterations begin .. end - 1, one part of the range. It must not throw, fork,
 * or leave by longjmp. It must not wait for another part, because parts may run one after another. Parts with
 * the same number `thread` never run at the same time, so it can be the index into an array of partial
 * results. */
typedef void (*polyop_body)(void* context, int64_t begin, int64_t end, int thread);

/* Runs `body` over begin .. end - 1 and returns when all of it has run.
 *
 * threads  the largest number of parts to divide the range into; 0 or less: the number of threads that a
 *          loop may use. When there are more parts than threads, a thread runs several.
 * chunk    0: parts of equal size, the longer ones first. Part t covers the range of polyop_part(t), so the
 *          division depends only on the range and `threads`. More than 0: pieces of that size. Each thread
 *          runs the pieces of its part of the range, then pieces that are left in the parts of other
 *          threads.
 *
 * Returns the number of values that `thread` can have had: each was from 0 to the result - 1. With chunk 0,
 * `body` was called exactly once for each of them.
 *
 * One loop at a time has the threads. A loop that another thread or a body starts meanwhile runs in the
 * thread that starts it: the same parts, one after another. */
typedef int (*polyop_parallel_fn)(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk,
                                  int threads);

/* Returns how many threads a loop may use now, at least 1. */
typedef int (*polyop_threads_fn)(void);

#ifndef POLYOP_NO_HOOKS
/* Protected visibility: each library has its own hooks, whatever other libraries the process has loaded. */
__attribute__((weak, visibility("protected"))) polyop_parallel_fn polyop_parallel = 0;
__attribute__((weak, visibility("protected"))) polyop_threads_fn polyop_threads = 0;
#endif

/* Returns the first iteration of part `part` of `parts`. The part ends where the next one begins. */
static inline int64_t polyop_part(int64_t begin, int64_t end, int part, int parts) {
  const int64_t each = (end - begin) / parts, longer = (end - begin) % parts;
  return begin + each * part + (part < longer ? part : longer);
}

/* Does what polyop_parallel does, without threads: the same parts, one after another. */
static inline int polyop_serial(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk,
                                int threads) {
  if (end <= begin) return 0;
  if (chunk > 0) {
    for (; end - begin > chunk; begin += chunk) body(context, begin, begin + chunk, 0);
    body(context, begin, end, 0);
    return 1;
  }
  const int parts = threads <= 0 ? 1 : threads < end - begin ? threads : (int)(end - begin);
  for (int part = 0; part < parts; ++part)
    body(context, polyop_part(begin, end, part, parts), polyop_part(begin, end, part + 1, parts), part);
  return parts;
}

#ifndef POLYOP_NO_HOOKS
/* Runs a loop on polyop's threads when polyop has opened the library, else in the calling thread. */
static inline int polyop_for(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk,
                             int threads) {
  return (polyop_parallel ? polyop_parallel : polyop_serial)(body, context, begin, end, chunk, threads);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
