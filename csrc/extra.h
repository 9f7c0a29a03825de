// What stands behind a kernel's `extra` pointer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "polyop/abi.h"

namespace polyop {

// The value of one attribute, in the arrays that polyop_attribute points into.
struct Attribute {
  int32_t kind = POLYOP_NONE;
  int32_t depth = 0;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> texts;
  std::vector<const char*> strings;
  std::vector<size_t> row_lengths;

  void add(bool value);
  void add(int64_t value);
  void add(double value);
  void add(const std::string& value);
  void seal();  // after the last add: strings point into texts
};

// Attributes, workspaces and kernel data of one prepared kernel. Its C face is `contract`.
class Extra {
 public:
  explicit Extra(std::map<std::string, Attribute> attributes);
  ~Extra();
  Extra(const Extra&) = delete;
  Extra& operator=(const Extra&) = delete;

  polyop_extra* contract() { return &contract_; }
  const std::vector<size_t>& workspaces() const { return workspaces_; }

 private:
  friend struct ExtraFunctions;
  polyop_extra contract_;
  std::map<std::string, Attribute> attributes_;
  std::vector<size_t> workspaces_;
  void* data_ = nullptr;
  void (*destroy_)(void*) = nullptr;
};

// The error text that the calling thread gave last, and forgets with this call.
std::string take_error();

// Before a kernel or Init runs: what an earlier one said and did not fail with is not its error.
void forget_error();

}  // namespace polyop
