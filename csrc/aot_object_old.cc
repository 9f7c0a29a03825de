// MindSpore's AotExtra with strings of the old ABI of libstdc++: CMakeLists.txt compiles this file with it.
#define POLYOP_STRINGS old_strings
#include "aot_object_of.h"

std::unique_ptr<polyop::AotObject> polyop::aot_object_with_old_strings(polyop_extra* contract) {
  return std::make_unique<old_strings::Object>(contract);
}
