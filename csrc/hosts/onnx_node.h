// The kernel of a node in an ONNX Runtime session, and the Python functions that it calls.
#pragma once

#include <Python.h>

#include <string>

#include "../locks.h"
#include "polyop/export/onnx_api.h"

namespace polyop::ort {

// The functions of polyop.graph.onnx_session. They are called with Python's lock held. Each returns its
// result, or a str with the text of an error.
struct Functions {
  PyObject* rows = nullptr;     // () -> [(domain, type, name, (attribute, ...))], by domain
  PyObject* text = nullptr;     // (name, attributes, number of inputs) -> (text of a Target,)
  PyObject* results = nullptr;  // (text, [(shape, row of dtypes())]) -> ([(shape, row)], cacheable)
};

// Holds Python's lock. False, without the lock, when start() was not called or stop() was.
class Python {
 public:
  Python();
  ~Python();
  Python(const Python&) = delete;
  Python& operator=(const Python&) = delete;
  explicit operator bool() const { return entered_; }
  static void start(const Functions& callbacks);  // they are never released
  static void stop();                             // waits for the threads inside; needs Python's lock

 private:
  Gate* gate_;
  bool entered_;
  PyGILState_STATE state_{};
};
extern Functions functions;

constexpr const char* kPythonUnavailable =
    "polyop.graph.onnx is not imported in this process, or Python has ended";

// Returns the answer of one of the functions, or null and the text of its error. Steals the reference to
// `answer`.
PyObject* checked_answer(PyObject* answer, PyObject* function, std::string* error);

// An ONNX Runtime error with this text.
Status* make_status(const Api& api, const std::string& error);

// The kernel of a node, which makes the call of a Target.
void* make_node(const Api& api, const std::string& text);
Status* run_node(void* node, Context* context);
void drop_node(void* node);

}  // namespace polyop::ort
