/* The dtypes of tensors: the rows of src/polyop/core/dtypes.py. `make golden` writes this file. */
#ifndef POLYOP_DTYPES_H
#define POLYOP_DTYPES_H

/* The numbers are those of polyop's table of dtypes, which only grows. */
enum polyop_dtype {
  POLYOP_DTYPE_ABSENT = -1, /* no array is given for an optional argument */
  POLYOP_DTYPE_BOOL = 0,
  POLYOP_DTYPE_INT8 = 1,
  POLYOP_DTYPE_INT16 = 2,
  POLYOP_DTYPE_INT32 = 3,
  POLYOP_DTYPE_INT64 = 4,
  POLYOP_DTYPE_UINT8 = 5,
  POLYOP_DTYPE_UINT16 = 6,
  POLYOP_DTYPE_UINT32 = 7,
  POLYOP_DTYPE_UINT64 = 8,
  POLYOP_DTYPE_FLOAT16 = 9,
  POLYOP_DTYPE_FLOAT32 = 10,
  POLYOP_DTYPE_FLOAT64 = 11,
  POLYOP_DTYPE_BFLOAT16 = 12,
  POLYOP_DTYPE_COMPLEX64 = 13,
  POLYOP_DTYPE_COMPLEX128 = 14,
  POLYOP_DTYPE_FLOAT8_E4M3FN = 15,
  POLYOP_DTYPE_FLOAT8_E5M2 = 16,
  POLYOP_DTYPE_FLOAT8_E4M3FNUZ = 17,
  POLYOP_DTYPE_FLOAT8_E5M2FNUZ = 18,
  POLYOP_DTYPE_FLOAT8_E8M0FNU = 19,
  POLYOP_DTYPE_FLOAT4_E2M1FN = 20
};

/* clang-format off */

/* In the order of polyop_dtype: X(name, bytes of an element, DLPack's type code and bits, then the numbers
 * that PyTorch, CANN, ONNX and XLA have for it; -1: none). */
#define POLYOP_DTYPES(X) \
  X("bool", 1, 6, 8, 11, 12, 9, 1) \
  X("int8", 1, 0, 8, 1, 2, 3, 2) \
  X("int16", 2, 0, 16, 2, 6, 5, 3) \
  X("int32", 4, 0, 32, 3, 3, 6, 4) \
  X("int64", 8, 0, 64, 4, 9, 7, 5) \
  X("uint8", 1, 1, 8, 0, 4, 2, 6) \
  X("uint16", 2, 1, 16, 27, 7, 4, 7) \
  X("uint32", 4, 1, 32, 28, 8, 12, 8) \
  X("uint64", 8, 1, 64, 29, 10, 13, 9) \
  X("float16", 2, 2, 16, 5, 1, 10, 10) \
  X("float32", 4, 2, 32, 6, 0, 1, 11) \
  X("float64", 8, 2, 64, 7, 11, 11, 12) \
  X("bfloat16", 2, 4, 16, 15, 27, 16, 16) \
  X("complex64", 8, 5, 64, 9, 16, 14, 15) \
  X("complex128", 16, 5, 128, 10, 17, 15, 18) \
  X("float8_e4m3fn", 1, 10, 8, 24, 36, 17, 20) \
  X("float8_e5m2", 1, 12, 8, 23, 35, 19, 19) \
  X("float8_e4m3fnuz", 1, 11, 8, 26, -1, 18, 25) \
  X("float8_e5m2fnuz", 1, 13, 8, 25, -1, 20, 24) \
  X("float8_e8m0fnu", 1, 14, 8, 44, 37, -1, 33) \
  X("float4_e2m1fn", 1, 17, 8, -1, -1, -1, -1)

/* Those that MindSpore has: X(its name, TypeId). */
#define POLYOP_MINDSPORE_DTYPES(X) \
  X(Bool, 30) \
  X(Int8, 32) \
  X(Int16, 33) \
  X(Int32, 34) \
  X(Int64, 35) \
  X(UInt8, 37) \
  X(UInt16, 38) \
  X(UInt32, 39) \
  X(UInt64, 40) \
  X(Float16, 42) \
  X(Float32, 43) \
  X(Float64, 44) \
  X(BFloat16, 45) \
  X(Complex64, 47) \
  X(Complex128, 48)

/* Floats of one byte in loop kernels: X(C type, conversions in loops/byte_floats.h, their arguments). */
#define POLYOP_BYTE_FLOATS(X) \
  X(f8e4m3, FLOAT, 3, 7, 0x80u, 0x7fu, 0x7fu, 0x7fu, 0x43e80001u) \
  X(f8e5m2, FLOAT, 2, 15, 0x80u, 0x7cu, 0x7cu, 0x7eu, 0x47700000u) \
  X(f8e8m0, SCALE, 0) \
  X(f4e2m1, FLOAT, 1, 1, 0x8u, 0x8u, 0x7u, 0x8u, 0x40a00001u)

/* clang-format on */

#endif
