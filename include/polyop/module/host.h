// A module's access to polyop: its table of functions, and errors as exceptions.
#ifndef POLYOP_MODULE_HOST_H
#define POLYOP_MODULE_HOST_H

#include <stdexcept>

#include "../module_abi.h"

// POLYOP_COLD is for functions that run once or only fail. Their code is small and compiles faster. The
// compiler treats a path that always leads to a cold call as cold, too. Where the author's loops may be on
// that path, use POLYOP_OUTLINE.
#define POLYOP_COLD __attribute__((cold, noinline))
#define POLYOP_OUTLINE __attribute__((noinline))

namespace polyop {

inline const polyop_module_functions*& functions() {
  static const polyop_module_functions* table = nullptr;
  return table;
}

// Throws std::runtime_error with polyop's text when `code` is not 0.
inline void check(int code) {
  if (code != 0) throw std::runtime_error(functions()->error());
}

// Throws when the module was built with a newer header than the polyop that opens it.
inline void check_functions(const polyop_module_functions* table) {
  if (table->version != POLYOP_MODULE_VERSION || table->size < sizeof(polyop_module_functions)) {
    throw std::runtime_error("the module was built for a newer polyop than this one: update polyop");
  }
}

// Whether output shapes are derived. Then tensors have no data, and kernels do not run.
inline bool deriving() { return functions()->deriving() != 0; }

}  // namespace polyop

#endif
