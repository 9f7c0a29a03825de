/* The contract between polyop's threads and a kernel that runs loops on them, in C.
 *
 * A kernel includes this file and calls polyop_for(). When polyop opens the library it sets the
 * two hooks below; a library that something else opened runs its loops in the calling thread.
 */
#ifndef POLYOP_PARALLEL_H
#define POLYOP_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the iterations begin .. end - 1 of a loop. It must not throw, fork or leave by longjmp,
 * nor wait for another part: parts may run one after another. `thread` numbers the part, and no
 * two parts with one number run at the same time: an array of partial results is indexed by it. */
typedef void (*polyop_body)(void* context, int64_t begin, int64_t end, int thread);

/* Runs `body` over begin .. end - 1 and returns when all of it has run.
 *
 * threads  how many parts to divide the range into at most; 0 or less: as many as there may be
 *          threads. More parts than threads take turns.
 * chunk    0: parts of equal size, the longer ones first; part t covers polyop_part(t), so the
 *          division depends on the range and `threads` alone. More than 0: pieces of that size;
 *          each thread runs those of its part of the range, then what is left of the others'.
 *
 * Returns how many numbers `thread` can have had: each was from 0 to the result - 1. With chunk 0
 * each of them was called exactly once.
 *
 * One loop at a time has the threads. A loop that another thread or a body starts meanwhile runs
 * in its own thread: the same parts, one after another. */
typedef int (*polyop_parallel_fn)(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk,
                                  int threads);

/* Returns how many threads a loop may use now, at least 1. */
typedef int (*polyop_threads_fn)(void);

#ifndef POLYOP_NO_HOOKS
/* Protected: each library has its own pair, whatever else the process has loaded. */
__attribute__((weak, visibility("protected"))) polyop_parallel_fn polyop_parallel = 0;
__attribute__((weak, visibility("protected"))) polyop_threads_fn polyop_threads = 0;
#endif

/* The first iteration of part `part` of `parts`; that of the next part is where it ends. */
static inline int64_t polyop_part(int64_t begin, int64_t end, int part, int parts) {
  const int64_t each = (end - begin) / parts, longer = (end - begin) % parts;
  return begin + each * part + (part < longer ? part : longer);
}

/* polyop_parallel without threads: the same parts, one after another. */
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
/* polyop_parallel where polyop opened the library, else polyop_serial. */
static inline int polyop_for(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk,
                             int threads) {
  return (polyop_parallel ? polyop_parallel : polyop_serial)(body, context, begin, end, chunk, threads);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
