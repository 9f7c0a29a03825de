// Access to polyop from a module: the functions that it hands over, and errors as exceptions.
#ifndef POLYOP_MODULE_HOST_H
#define POLYOP_MODULE_HOST_H

#include <stdexcept>

#include "../module_abi.h"

namespace polyop {

inline const polyop_module_functions*& functions() {
  static const polyop_module_functions* table = nullptr;
  return table;
}

// Throws std::runtime_error with polyop's words when `code` is not 0.
inline void check(int code) {
  if (code != 0) throw std::runtime_error(functions()->error());
}

// Whether output shapes are being derived: tensors have no data then, and kernels do not run.
inline bool deriving() { return functions()->deriving() != 0; }

}  // namespace polyop

#endif
