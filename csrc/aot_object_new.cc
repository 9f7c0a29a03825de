// MindSpore's AotExtra with strings of the new ABI of libstdc++: CMakeLists.txt compiles this file with it.
#define POLYOP_STRINGS new_strings
#include "aot_object_of.h"

std::unique_ptr<polyop::AotObject> polyop::aot_object_with_new_strings(polyop_extra* contract) {
  return std::make_unique<new_strings::Object>(contract);
}
