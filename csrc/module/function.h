// A module's function with the values of its attributes: what a prepared call of it runs.
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
  kList = 'l',    // of tensors; its value is their number, or None
  kNested = 'n',  // a list of lists of tensors; its value holds their numbers
  kValue = 'a'
};

struct Function {
  const polyop_function* entry;
  std::string kinds;                 // a Pass for each parameter
  std::vector<polyop_value> values;  // an attribute's value; the numbers of tensors
  std::vector<bool> declared;        // for each tensor: the schema says that it is written
  std::string label;

  // `values` is a tuple. Null with a Python error set where a value cannot be passed.
  static std::shared_ptr<const Function> make(const polyop_function* entry, const std::string& kinds,
                                              PyObject* values);

 private:
  bool convert(PyObject* value, polyop_value* made, int depth = 0);
  std::deque<std::string> texts_;
  std::deque<std::vector<polyop_value>> lists_;
};

// What a function gave: its tensors, and their form: 't' one, 'l' a list, 'n' none; or a value.
struct Result {
  char form = 'n';
  std::vector<Ref> tensors;
  PyObject* value = nullptr;  // where it is none of these: a new reference
};

// Call a function in the frame, on its tensors in order (null where one is absent). Throws
// std::runtime_error with the author's words.
Result call(const Function& function, const std::vector<Ref>& tensors);

}  // namespace polyop::module
