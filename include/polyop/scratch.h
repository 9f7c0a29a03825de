/* Memory that a kernel needs while it runs, in C.
 *
 * When polyop opens the library it sets the two hooks below: a thread then keeps such memory for its next
 * kernel, as the system clears every page that it hands out anew. A library that something else opened asks
 * the system each time.
 */
#ifndef POLYOP_SCRATCH_H
#define POLYOP_SCRATCH_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns memory for `bytes` and 64 more, aligned for vectors, of any content; null when there is none. */
typedef void* (*polyop_take_fn)(int64_t bytes);
/* Takes memory back, in whichever thread; null is none. */
typedef void (*polyop_give_fn)(void* memory);

#ifndef POLYOP_NO_HOOKS
/* Protected: each library has its own pair, whatever else the process has loaded. */
__attribute__((weak, visibility("protected"))) polyop_take_fn polyop_take = 0;
__attribute__((weak, visibility("protected"))) polyop_give_fn polyop_give = 0;

/* Both as the hooks do it, a size of 0 before the memory included, which says that nobody keeps it: polyop
 * may open the library while a kernel has some. */
static inline void* polyop_scratch(int64_t bytes) {
  const polyop_take_fn take = __atomic_load_n(&polyop_take, __ATOMIC_ACQUIRE);
  void* found = 0;
  if (take) return take(bytes);
  if (posix_memalign(&found, 64, (bytes > 0 ? (size_t)bytes : 0) + 128)) return 0;
  *(int64_t*)found = 0;
  return (char*)found + 64;
}

static inline void polyop_release(void* memory) {
  const polyop_give_fn give = __atomic_load_n(&polyop_give, __ATOMIC_ACQUIRE);
  if (give)
    give(memory);
  else if (memory)
    free((char*)memory - 64);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
