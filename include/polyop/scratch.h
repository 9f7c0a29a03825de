/* Memory that a kernel needs while it runs, in C.
 *
 * When polyop opens the library, it sets the two hooks below. A thread then keeps such memory for its next
 * kernel, because new memory is slow: the system clears every page. A library that something else has opened
 * asks the system each time.
 */
#ifndef POLYOP_SCRATCH_H
#define POLYOP_SCRATCH_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns memory for `bytes` bytes and 64 more, aligned to 64 bytes and not initialised; null when there is
 * none. */
typedef void* (*polyop_take_fn)(int64_t bytes);
/* Takes memory back, in any thread. Null is ignored. */
typedef void (*polyop_give_fn)(void* memory);

#ifndef POLYOP_NO_HOOKS
/* Protected visibility: each library has its own hooks, whatever other libraries the process has loaded. */
__attribute__((weak, visibility("protected"))) polyop_take_fn polyop_take = 0;
__attribute__((weak, visibility("protected"))) polyop_give_fn polyop_give = 0;

/* These call the hooks, or work without them in the same layout: polyop may open the library between the two
 * calls of a kernel. The size in front of the memory is then 0, so polyop frees the memory and does not keep
 * it. */
static inline void* polyop_scratch(int64_t bytes) {
  const polyop_take_fn take = __atomic_load_n(&polyop_take, __ATOMIC_ACQUIRE);
  void* block = 0;
  if (take) return take(bytes);
  if (posix_memalign(&block, 64, (bytes > 0 ? (size_t)bytes : 0) + 128)) return 0;
  *(int64_t*)block = 0;
  return (char*)block + 64;
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
