#include "narrow.h"

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace polyop {

namespace {

size_t count_of(const View& view) {
  size_t count = 1;
  for (int32_t i = 0; i < view.ndim; ++i) count *= static_cast<size_t>(view.shape[i]);
  return count;
}

template <typename Wide, typename Narrow>
std::string narrow_integers(const Wide* from, Narrow* to, size_t count) {
  bool fits = true;
  for (size_t i = 0; i < count; ++i) {  // without a branch, so that it is vectorised
    to[i] = static_cast<Narrow>(from[i]);
    fits &= static_cast<Wide>(to[i]) == from[i];
  }
  for (size_t i = 0; !fits && i < count; ++i) {
    if (static_cast<Wide>(to[i]) != from[i]) return std::to_string(from[i]);
  }
  return "";
}

}  // namespace

std::string narrow(const View& from, const View& to) {
  const std::string& name = dtypes()[static_cast<size_t>(from.dtype)].name;
  const size_t count = count_of(from);
  if (name == "int64") {
    return narrow_integers(static_cast<const int64_t*>(from.data), static_cast<int32_t*>(to.data), count);
  }
  if (name == "uint64") {
    return narrow_integers(static_cast<const uint64_t*>(from.data), static_cast<uint32_t*>(to.data), count);
  }
  if (name != "float64" && name != "complex128") throw std::logic_error("no narrow dtype for " + name);
  const size_t numbers = name == "float64" ? count : 2 * count;
  const auto* wide = static_cast<const double*>(from.data);
  auto* out = static_cast<float*>(to.data);
  for (size_t i = 0; i < numbers; ++i) out[i] = static_cast<float>(wide[i]);
  return "";
}

}  // namespace polyop
