// Access to polyop from a module: the functions that it hands over, and errors as exceptions.
#ifndef POLYOP_MODULE_HOST_H
#define POLYOP_MODULE_HOST_H

#include <stdexcept>

#include "../module_abi.h"

// What runs once, or to fail: small code, which also compiles faster. A path that always comes to such
// a call is taken for cold itself, with the author's loops on it: there it must be POLYOP_OUTLINE.
#define POLYOP_COLD __attribute__((cold, noinline))
#define POLYOP_OUTLINE __attribute__((noinline))

namespace polyop {

inline const polyop_module_functions*& functions() {
  static const polyop_module_functions* table = nullptr;
  return table;
}

// Throws std::runtime_error with polyop's words when `code` is not 0.
inline void check(int code) {
  if (code != 0) throw std::runtime_error(functions()->error());
}

// Throws where the module was built with a newer header than the polyop that opens it.
inline void check_functions(const polyop_module_functions* table) {
  if (table->version != POLYOP_MODULE_VERSION || table->size < sizeof(polyop_module_functions)) {
    throw std::runtime_error("the module was built for a newer polyop than this one: update polyop");
  }
}

// Whether output shapes are being derived: tensors have no data then, and kernels do not run.
inline bool deriving() { return functions()->deriving() != 0; }

}  // namespace polyop

#endif
