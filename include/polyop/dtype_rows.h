// The rows of dtypes.h as a table, by polyop_dtype.
#ifndef POLYOP_DTYPE_ROWS_H
#define POLYOP_DTYPE_ROWS_H

#include <stdint.h>

#include "dtypes.h"

namespace polyop {

struct DTypeRow {
  const char* name;
  int32_t bytes, dlpack_code, dlpack_bits;
  int32_t torch, cann, onnx, xla;  // the numbers that others have for it; -1: none
};
#define POLYOP_ROW(...) {__VA_ARGS__},
constexpr DTypeRow kDTypeRows[] = {POLYOP_DTYPES(POLYOP_ROW)};
#undef POLYOP_ROW
constexpr int32_t kDTypes = sizeof kDTypeRows / sizeof *kDTypeRows;

// The polyop_dtype that has this number in a column; POLYOP_DTYPE_ABSENT if none has.
constexpr int32_t dtype_with(int32_t DTypeRow::* column, int32_t number) {
  for (int32_t i = 0; i < kDTypes && number >= 0; ++i) {
    if (kDTypeRows[i].*column == number) return i;
  }
  return POLYOP_DTYPE_ABSENT;
}

}  // namespace polyop

#endif
