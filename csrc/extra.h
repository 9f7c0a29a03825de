// The object behind a kernel's `extra` pointer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aot_object.h"
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

// A number that a call passes on to a kernel that is prepared for all its values.
struct Number {
  const char* name;
  int32_t kind;  // POLYOP_INT or POLYOP_FLOAT
  int64_t integer;
  double real;
};

// Attributes, workspaces and kernel data of one prepared kernel. contract() is the struct that C code sees,
// pointer() what the kernel gets: that struct, or MindSpore's object.
class Extra {
 public:
  explicit Extra(std::map<std::string, Attribute> attributes, Strings strings = Strings::kNone);
  ~Extra();
  Extra(const Extra&) = delete;
  Extra& operator=(const Extra&) = delete;

  polyop_extra* contract() { return &contract_; }
  void* pointer() { return object_ != nullptr ? object_->pointer() : &contract_; }
  const std::vector<size_t>& workspaces() const {
    return object_ != nullptr ? object_->workspaces() : workspaces_;
  }
  bool has_data() const { return object_ != nullptr ? object_->has_data() : data_ != nullptr; }

 private:
  friend struct ExtraFunctions;
  friend class NumbersOfCall;
  // What `state` of a contract points to: the attributes, and the numbers that come before them.
  struct State {
    Extra* extra;
    const Number* numbers;
    size_t count;
  };
  State state_{this, nullptr, 0};
  polyop_extra contract_;
  std::map<std::string, Attribute> attributes_;
  std::vector<size_t> workspaces_;
  void* data_ = nullptr;
  void (*destroy_)(void*) = nullptr;
  std::unique_ptr<AotObject> object_;
};

// The contract of a prepared kernel with the numbers of one call. Several threads may have one each.
class NumbersOfCall {
 public:
  NumbersOfCall(Extra& extra, const Number* numbers, size_t count)
      : state_{&extra, numbers, count}, contract_(*extra.contract()) {
    contract_.state = &state_;
  }
  NumbersOfCall(const NumbersOfCall&) = delete;
  NumbersOfCall& operator=(const NumbersOfCall&) = delete;
  polyop_extra* contract() { return &contract_; }

 private:
  Extra::State state_;
  polyop_extra contract_;
};

// Returns and clears the text that a kernel last passed to set_error on this thread.
std::string take_error();

// Clears that text. Called before each kernel and Init: an earlier one may have set a text and returned 0.
void clear_error();

}  // namespace polyop
