// Whether elements of one tensor share memory, or those of two, and the refusal of such tensors where they
// are written. The same rule as in src/polyop/call/overlap.py: of a copy only the value that is copied back
// last would remain.
#ifndef POLYOP_EXPORT_OVERLAP_H
#define POLYOP_EXPORT_OVERLAP_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "polyop/export/operator.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // Where the elements of a tensor lie. The strides count elements, the other numbers bytes.
  struct Layout {
    const char* name;  // of the argument
    const char* data;
    const int64_t* sizes;
    const int64_t* strides;
    int32_t ndim;
    int64_t itemsize;

    bool is_empty() const { return std::count(sizes, sizes + ndim, 0) != 0; }

    // The addresses of all elements, in order.
    std::vector<intptr_t> addresses() const {
      std::vector<intptr_t> found = {reinterpret_cast<intptr_t>(data)};
      for (int32_t d = 0; d < ndim; ++d) {
        const size_t count = found.size();
        found.reserve(count * static_cast<size_t>(sizes[d]));
        for (int64_t i = 1; i < sizes[d]; ++i) {
          for (size_t k = 0; k < count; ++k) found.push_back(found[k] + i * strides[d] * itemsize);
        }
      }
      std::sort(found.begin(), found.end());
      return found;
    }

    // The first address, and the one behind the last.
    std::pair<intptr_t, intptr_t> ends() const {
      auto first = reinterpret_cast<intptr_t>(data), last = first;
      for (int32_t d = 0; d < ndim; ++d) {
        const int64_t step = (sizes[d] - 1) * strides[d] * itemsize;
        (step < 0 ? first : last) += step;
      }
      return {first, last + itemsize};
    }
  };

  // Whether neighbours of these addresses, which are in order, are nearer than an element is long.
  inline bool any_nearer(const std::vector<intptr_t>& addresses, int64_t itemsize) {
    const auto nearer = [&](intptr_t a, intptr_t b) { return b - a < itemsize; };
    return std::adjacent_find(addresses.begin(), addresses.end(), nearer) != addresses.end();
  }

  // Whether two elements of a tensor share memory.
  inline bool is_overlapping(const Layout& one) {
    if (one.is_empty()) return false;
    std::vector<std::pair<int64_t, int64_t>> axes;  // (step, size), by growing steps
    for (int32_t d = 0; d < one.ndim; ++d) {
      if (one.sizes[d] > 1) axes.emplace_back(std::abs(one.strides[d]), one.sizes[d]);
    }
    std::sort(axes.begin(), axes.end());
    if (!axes.empty() && axes.front().first == 0) return true;
    int64_t end = 1;  // of the axes so far; a step beyond it keeps all elements apart
    bool apart = true;
    for (const auto& axis : axes) {
      apart = apart && axis.first >= end;
      end += (axis.second - 1) * axis.first;
    }
    return !apart && any_nearer(one.addresses(), one.itemsize);  // exact, for the rare layouts that are left
  }

  // Whether two tensors share memory. Neither overlaps itself.
  inline bool share_memory(const Layout& one, const Layout& other) {
    if (one.is_empty() || other.is_empty()) return false;
    const auto first = one.ends(), second = other.ends();
    if (first.second <= second.first || second.second <= first.first) return false;
    if (one.itemsize != other.itemsize) return true;
    const std::vector<intptr_t> ours = one.addresses(), theirs = other.addresses();
    std::vector<intptr_t> both(ours.size() + theirs.size());
    std::merge(ours.begin(), ours.end(), theirs.begin(), theirs.end(), both.begin());
    return any_nearer(both, one.itemsize);
  }

  // Returns "(2, 3)", as Python writes a tuple.
  inline std::string tuple_text(const int64_t* numbers, int32_t count) {
    std::string text;
    for (int32_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
    return "(" + text + (count == 1 ? ",)" : ")");
  }

  // Throws Error for a tensor that is written and overlaps itself.
  inline void check_overlap(const Layout& one) {
    if (!is_overlapping(one)) return;
    throw Error("argument " + std::string(one.name) +
                ": is written in place, so no two of its elements may share memory, but got shape " +
                tuple_text(one.sizes, one.ndim) + " with strides " + tuple_text(one.strides, one.ndim) +
                "\n  pass a copy, which has memory for each element");
  }

  // Throws Error for two tensors that are written and share memory.
  inline void check_apart(const std::vector<Layout>& written) {
    for (size_t i = 0; i < written.size(); ++i) {
      for (size_t k = i + 1; k < written.size(); ++k) {
        if (!share_memory(written[i], written[k])) continue;
        throw Error("argument " + std::string(written[i].name) +
                    ": is written in place: it must not share memory with " + written[k].name +
                    "\n  pass a copy of one of them");
      }
    }
  }

}  // namespace exported
}  // namespace polyop

#endif
