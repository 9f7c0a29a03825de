#include "../locks.h"
#include "../python_lock.h"
#include "onnx_node.h"

namespace polyop::ort {

namespace {

Gate* gate = new Gate(false);  // open from start() to stop(); never freed

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { gate = gate->without_threads(); });

}  // namespace

Functions functions;

Python::Python() : gate_(gate), entered_(gate_->enter()) {
  if (entered_) state_ = ensure_lock();
}

Python::~Python() {
  if (!entered_) return;
  PyGILState_Release(state_);
  gate_->leave();
}

void Python::start(const Functions& callbacks) {
  Py_INCREF(callbacks.rows);
  Py_INCREF(callbacks.text);
  Py_INCREF(callbacks.results);
  functions = callbacks;
  gate->open();
}

void Python::stop() {
  PyThreadState* self = PyEval_SaveThread();  // the threads inside need Python's lock to leave
  gate->close();
  retake_lock(self);
}

PyObject* checked_answer(PyObject* answer, PyObject* function, std::string* error) {
  if (answer == nullptr) {
    PyErr_WriteUnraisable(function);
    *error = "the call was interrupted";
    return nullptr;
  }
  if (!PyUnicode_Check(answer)) return answer;
  const char* text = PyUnicode_AsUTF8(answer);
  *error = text == nullptr ? "an error whose text is not UTF-8" : text;
  PyErr_Clear();
  Py_DECREF(answer);
  return nullptr;
}

}  // namespace polyop::ort
