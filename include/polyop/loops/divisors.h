/* The greatest common divisor and the least common multiple of scalars, on all targets; see integer.h. E is
 * the integer, U the unsigned one of its size. Unsigned numbers are compared with 0 too, and nvcc warns of a
 * < 0. */
#define POLYOP_DIVISORS(E, U)                                                                  \
  POLYOP_FN U polyop_size_##E(E a) { return a > 0 ? (U)a : (U)((U)0 - (U)a); }                 \
  POLYOP_FN E polyop_gcd_##E(E a, E b) {                                                       \
    U x = polyop_size_##E(a), y = polyop_size_##E(b);                                          \
    while (y) {                                                                                \
      const U rest = (U)(x % y);                                                               \
      x = y, y = rest;                                                                         \
    }                                                                                          \
    return (E)x;                                                                               \
  }                                                                                            \
  POLYOP_FN E polyop_lcm_##E(E a, E b) {                                                       \
    const U x = polyop_size_##E(a), y = polyop_size_##E(b), divisor = (U)polyop_gcd_##E(a, b); \
    return divisor ? (E)(U)((u64)(U)(x / divisor) * y) : (E)0;                                 \
  }
POLYOP_DIVISORS(i8, u8)
POLYOP_DIVISORS(i16, u16)
POLYOP_DIVISORS(i32, u32)
POLYOP_DIVISORS(i64, u64)
POLYOP_DIVISORS(u8, u8)
POLYOP_DIVISORS(u16, u16)
POLYOP_DIVISORS(u32, u32)
POLYOP_DIVISORS(u64, u64)
#undef POLYOP_DIVISORS
