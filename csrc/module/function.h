// A module's function with the values of its attributes, ready to be called.
#pragma once

#include <Python.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "frame.h"

namespace polyop::module {

// How one parameter of a function is passed.
enum class Pass : char {
  kTensor = 't',
  kList = 'l',    // a list of tensors; the value is their number, or None for an absent list
  kNested = 'n',  // a list of lists of tensors; the value is a list of their numbers
  kValue = 'a'
};

struct Function {
  const polyop_function* entry;
  std::string kinds;                 // a Pass for each parameter
  std::vector<polyop_value> values;  // per parameter: an attribute's value, or the numbers of tensors
  std::vector<bool> declared;        // per tensor: whether the schema declares it as written
  std::vector<std::string> names;    // per tensor: the name of its argument
  std::string label;

  // `values` is a tuple with a value per parameter. Null with a Python error when a value cannot be passed.
  static std::shared_ptr<const Function> make(const polyop_function* entry, const std::string& kinds,
                                              PyObject* values);

 private:
  bool convert(PyObject* value, polyop_value* result, int depth = 0);
  std::deque<std::string> texts_;
  std::deque<std::vector<polyop_value>> lists_;
};

// The result of a function. `form`: 't' one tensor, 'l' a list of tensors, 'n' nothing, 'v' another value.
struct Result {
  char form = 'n';
  std::vector<Ref> tensors;
  PyObject* value = nullptr;  // for 'v': a new reference
};

// Calls a function in the current frame, on its tensors in order (null for an absent one). Throws
// std::runtime_error with the author's text.
Result call(const Function& function, const std::vector<Ref>& tensors);

}  // namespace polyop::module
