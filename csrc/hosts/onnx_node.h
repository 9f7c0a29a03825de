// A node of an ONNX Runtime session, and what it asks Python.
#pragma once

#include <Python.h>

#include <string>

#include "onnx_api.h"

namespace polyop::ort {

// The functions of polyop.graph.onnx_session, called with Python's lock held. Each gives a text, the words
// of an error, or what it is asked for.
struct Functions {
  PyObject* rows = nullptr;     // () -> [(domain, type, name, (attribute, ...))], by domain
  PyObject* text = nullptr;     // (name, attributes, number of inputs) -> (text of a Target,)
  PyObject* results = nullptr;  // (text, [(shape, row of dtypes())]) -> ([the same], whether always so)
};

// Python's lock, held where the functions are there and Python has not ended.
class Python {
 public:
  Python();
  ~Python();
  Python(const Python&) = delete;
  Python& operator=(const Python&) = delete;
  explicit operator bool() const { return entered_; }
  static void start(const Functions& given);  // they are kept for the life of the process
  static void stop();                         // waits for who is inside; needs Python's lock

 private:
  bool entered_ = false;
  PyGILState_STATE state_{};
};
extern Functions functions;

constexpr const char* kNotThere = "polyop.graph.onnx is not imported in this process, or Python has ended";

// What a function gave, unless that is the words of its error. Takes the reference.
PyObject* answer_of(PyObject* answer, PyObject* function, std::string* words);

Status* failed(const Api& api, const std::string& words);

// The kernel of a node: the call that a text of a Target says.
void* make_node(const Api& api, const std::string& text);
Status* run_node(void* node, Context* context);
void drop_node(void* node);

}  // namespace polyop::ort
