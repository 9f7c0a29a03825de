// Fill: writes the fixed attribute `value` into every element.
#include "polyop/abi.h"

extern "C" int Fill(int, void** params, int* ndims, int64_t** shapes, const char**, void*, void* extra) {
  double value = 0;
  int64_t count = 1;
  if (polyop_get_float(extra, "value", &value) != 0) return 1;
  for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(params[0])[i] = static_cast<float>(value);
  return 0;
}
