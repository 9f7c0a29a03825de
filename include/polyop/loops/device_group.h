/* Groups of threads that work on one row together, and reductions over them; included by device.h. Compiled,
 * but not run on hardware.
 *
 * A group has `width` threads: 32, a warp, or blockDim.x, a whole block (a multiple of 32, at most 1024). All
 * threads of a group must call these functions, with the same width. */

/* The operators of reductions. Integers wrap. */
struct polyop_plus {
  template <class T>
  static __host__ __device__ T of(T a, T b) {
    if constexpr (std::is_integral<T>::value) return (T)((u64)a + (u64)b);
    return a + b;
  }
};
struct polyop_times {
  template <class T>
  static __host__ __device__ T of(T a, T b) {
    if constexpr (std::is_integral<T>::value) return (T)((u64)a * (u64)b);
    return a * b;
  }
};
struct polyop_greatest {
  template <class T>
  static __host__ __device__ T of(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct polyop_least {
  template <class T>
  static __host__ __device__ T of(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};

POLYOP_GPU void polyop_sync(int width) {
  if (width == 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

/* The type in which a value is shuffled. CUDA shuffles 4 and 8 bytes, so smaller integers become int. */
template <class T>
struct polyop_travel {
  typedef
      typename std::conditional<std::is_floating_point<T>::value, T,
                                typename std::conditional<sizeof(T) == 8, long long, int>::type>::type type;
};
template <class T>
POLYOP_GPU T polyop_from_lane(T value, int lane) {
  return (T)__shfl_sync(0xffffffffu, (typename polyop_travel<T>::type)value, lane);
}
template <class T>
POLYOP_GPU T polyop_across(T value, int step) {
  return (T)__shfl_xor_sync(0xffffffffu, (typename polyop_travel<T>::type)value, step);
}

/* Combines the values of all threads of the group. All threads get the same result. The order depends only on
 * the width. */
template <class Op, class T>
POLYOP_GPU T polyop_combine(T value, int width) {
  for (int step = 16; step > 0; step /= 2) value = Op::of(value, polyop_across(value, step));
  value = polyop_from_lane(value, 0); /* for -0 and 0, lanes may have different results */
  if (width == 32) return value;
  __shared__ T parts[32];
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < width / 32; ++warp) value = Op::of(value, parts[warp]);
  __syncthreads();
  return value;
}

/* Returns the value of the group's first thread. */
template <class T>
POLYOP_GPU T polyop_broadcast(T value, int width) {
  if (width == 32) return polyop_from_lane(value, 0);
  __shared__ T slot;
  if (threadIdx.x == 0) slot = value;
  __syncthreads();
  value = slot;
  __syncthreads();
  return value;
}

/* `*place op= value` by several threads at once, for operators whose result does not depend on the order. */
template <class Op, class T>
POLYOP_GPU void polyop_atomic(T* place, T value) {
  typedef typename std::conditional<sizeof(T) == 8, unsigned long long, unsigned>::type Word;
  Word* const word = (Word*)place;
  Word current = *(volatile Word*)word, before;
  do {
    before = current;
    T old;
    memcpy(&old, &before, sizeof old);
    const T combined = Op::of(old, value);
    Word desired;
    memcpy(&desired, &combined, sizeof desired);
    current = atomicCAS(word, before, desired);
  } while (current != before);
}
