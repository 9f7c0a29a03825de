/* Interrupting a loop kernel that runs for long.
 *
 * When polyop opens the library, it sets the hook below. In a library that something else has opened, kernels
 * run to their end. A function of a kernel has a number of iterations as its fuel. When the fuel is used up,
 * about once per millisecond, the function asks the hook. Innermost loops have no check in them, so that they
 * are not slower; long ones are divided.
 */
#ifndef POLYOP_LOOPS_STOP_H
#define POLYOP_LOOPS_STOP_H
#include <stdint.h>

/* Whether the call that this thread works for must stop. Any thread may call it. */
typedef int (*polyop_stop_fn)(void);

#ifndef POLYOP_NO_HOOKS
/* Protected visibility: each library has its own hook, whatever other libraries the process has loaded. */
__attribute__((weak, visibility("protected"))) polyop_stop_fn polyop_stop = 0;

/* The place of a failure that stands for an interrupted kernel. */
enum { POLYOP_STOPPED = -2 };
/* Fuel: the iterations that a function may run before it asks the hook again whether to stop. Asking after
 * every iteration would be slow, so each function counts down a local variable `polyop_fuel` and asks when it
 * is below zero. This is the full amount. */
enum { POLYOP_FUEL = 1 << 20 };
/* Iterations of a long innermost loop between two checks. */
enum { POLYOP_STRETCH = 1 << 16 };

/* The number of iterations that a call of a threaded function counts for. */
enum { POLYOP_CALL = 1 << 10 };

/* The fuel that a function begins with. It is negative when the kernel has failed; the function then ends at
 * its first check. */
static inline __attribute__((unused)) int64_t polyop_fuel_of(const int* place) {
  return __atomic_load_n(place, __ATOMIC_RELAXED) ? -1 : POLYOP_FUEL;
}

/* Asks the hook. Returns new fuel, or a negative number when the kernel must stop. */
static __attribute__((noinline, cold, unused)) int64_t polyop_refuel(int* place) {
  const polyop_stop_fn stop = __atomic_load_n(&polyop_stop, __ATOMIC_ACQUIRE);
  int none = 0;
  if (stop && stop())
    __atomic_compare_exchange_n(place, &none, POLYOP_STOPPED, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return polyop_fuel_of(place);
}

/* Takes `iterations` from the caller's local variable polyop_fuel, and returns whether the loop must stop. */
#define polyop_stops(k, iterations)                          \
  (__builtin_expect((polyop_fuel -= (iterations)) < 0, 0) && \
   (polyop_fuel = polyop_refuel(&(k)->failure.place)) < 0)

/* Counts the iterations from `at` to `end`, and returns `end`. */
static inline __attribute__((unused)) int64_t polyop_counted(int64_t at, int64_t end, int64_t* fuel) {
  *fuel -= end > at ? end - at : 0;
  return end;
}

/* The iteration at which an innermost loop to `end` must check next. */
static inline __attribute__((unused)) int64_t polyop_next_check(int64_t at, int64_t end) {
  return end - at > POLYOP_STRETCH ? at + POLYOP_STRETCH : end;
}
#endif

#endif
