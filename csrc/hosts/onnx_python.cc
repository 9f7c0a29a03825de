#include <condition_variable>
#include <mutex>

#include "onnx_node.h"

namespace polyop::ort {

namespace {

std::mutex lock;
std::condition_variable nobody_inside;
int threads_inside = 0;
bool open = false;

}  // namespace

Functions functions;

// A thread that Python stops while it has C++ frames takes the process down. So no thread enters after
// stop(), and stop() waits for the threads inside.
Python::Python() {
  {
    const std::lock_guard<std::mutex> held(lock);
    entered_ = open;
    threads_inside += entered_ ? 1 : 0;
  }
  if (entered_) state_ = PyGILState_Ensure();
}

Python::~Python() {
  if (!entered_) return;
  PyGILState_Release(state_);
  const std::lock_guard<std::mutex> held(lock);
  if (--threads_inside == 0) nobody_inside.notify_all();
}

void Python::start(const Functions& callbacks) {
  Py_INCREF(callbacks.rows);
  Py_INCREF(callbacks.text);
  Py_INCREF(callbacks.results);
  const std::lock_guard<std::mutex> held(lock);
  functions = callbacks;
  open = true;
}

void Python::stop() {
  PyThreadState* self = PyEval_SaveThread();  // the threads inside need Python's lock to leave
  {
    std::unique_lock<std::mutex> held(lock);
    open = false;
    nobody_inside.wait(held, [] { return threads_inside == 0; });
  }
  PyEval_RestoreThread(self);
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
