// The object behind a kernel's `extra` pointer.
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
  void seal();  // call after the last add: makes `strings` point into `texts`
};

// Attributes, workspaces and kernel data of one prepared kernel. contract() is the struct that C code sees.
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

// Returns and clears the text that a kernel last passed to set_error on this thread.
std::string take_error();

// Clears that text. Called before each kernel and Init: an earlier one may have set a text and returned 0.
void clear_error();

}  // namespace polyop
