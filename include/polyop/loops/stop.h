/* How a loop kernel that runs for long is ended.
 *
 * When polyop opens the library it sets the hook below; a library that something else opened runs to its end.
 * A function of a kernel has a number of iterations as its fuel. It asks the hook when it has used them up:
 * about once in a millisecond. Innermost loops are not slowed down: only long ones are divided.
 */
#ifndef POLYOP_LOOPS_STOP_H
#define POLYOP_LOOPS_STOP_H
#include <stdint.h>

/* Returns whether the call that this thread works for is to end. Any thread may ask. */
typedef int (*polyop_stop_fn)(void);

#ifndef POLYOP_NO_HOOKS
/* Protected: each library has its own, whatever else the process has loaded. */
__attribute__((weak, visibility("protected"))) polyop_stop_fn polyop_stop = 0;

/* The place of a failure that says that the kernel was ended. */
enum { POLYOP_STOPPED = -2 };
enum { POLYOP_FUEL = 1 << 20 };
/* Iterations of a long innermost loop between two checks. */
enum { POLYOP_STRETCH = 1 << 16 };

/* What the call of a function of threads counts for. */
enum { POLYOP_CALL = 1 << 10 };

/* The fuel that a function begins with. It is negative where the kernel has failed: the function then ends at
 * its first check. */
static inline __attribute__((unused)) int64_t polyop_fuel_of(const int* place) {
  return __atomic_load_n(place, __ATOMIC_RELAXED) ? -1 : POLYOP_FUEL;
}

/* Returns new fuel, or a negative number where the kernel is to end. */
static __attribute__((noinline, cold, unused)) int64_t polyop_refuel(int* place) {
  const polyop_stop_fn stop = __atomic_load_n(&polyop_stop, __ATOMIC_ACQUIRE);
  int none = 0;
  if (stop && stop())
    __atomic_compare_exchange_n(place, &none, POLYOP_STOPPED, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return polyop_fuel_of(place);
}

/* Whether a loop is to end; `iterations` are counted. A function that uses it declares polyop_fuel. */
#define polyop_stops(k, iterations)                          \
  (__builtin_expect((polyop_fuel -= (iterations)) < 0, 0) && \
   (polyop_fuel = polyop_refuel(&(k)->failure.place)) < 0)

/* Returns the end of a loop from `at` on, whose iterations are counted. */
static inline __attribute__((unused)) int64_t polyop_counted(int64_t at, int64_t end, int64_t* fuel) {
  *fuel -= end > at ? end - at : 0;
  return end;
}

/* Where an innermost loop that goes on to `end` is to check next. */
static inline __attribute__((unused)) int64_t polyop_next_check(int64_t at, int64_t end) {
  return end - at > POLYOP_STRETCH ? at + POLYOP_STRETCH : end;
}
#endif

#endif
