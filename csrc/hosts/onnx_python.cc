#include <condition_variable>
#include <mutex>

#include "onnx_node.h"

namespace polyop::ort {

namespace {

std::mutex lock;
std::condition_variable nobody_inside;
int inside = 0;
bool open = false;

}  // namespace

Functions functions;

// A thread that Python stops while it holds C++ frames takes the process down: so nobody enters after
// stop(), which waits for who did.
Python::Python() {
  {
    const std::lock_guard<std::mutex> held(lock);
    entered_ = open;
    inside += entered_ ? 1 : 0;
  }
  if (entered_) state_ = PyGILState_Ensure();
}

Python::~Python() {
  if (!entered_) return;
  PyGILState_Release(state_);
  const std::lock_guard<std::mutex> held(lock);
  if (--inside == 0) nobody_inside.notify_all();
}

void Python::start(const Functions& given) {
  Py_INCREF(given.rows);
  Py_INCREF(given.text);
  Py_INCREF(given.results);
  const std::lock_guard<std::mutex> held(lock);
  functions = given;
  open = true;
}

void Python::stop() {
  PyThreadState* self = PyEval_SaveThread();  // who is inside needs Python's lock to leave
  {
    std::unique_lock<std::mutex> held(lock);
    open = false;
    nobody_inside.wait(held, [] { return inside == 0; });
  }
  PyEval_RestoreThread(self);
}

// What a function gave, unless that is the words of its error. Takes the reference.
PyObject* answer_of(PyObject* answer, PyObject* function, std::string* words) {
  if (answer == nullptr) {
    PyErr_WriteUnraisable(function);
    *words = "the call was interrupted";
    return nullptr;
  }
  if (!PyUnicode_Check(answer)) return answer;
  const char* text = PyUnicode_AsUTF8(answer);
  *words = text == nullptr ? "an error whose words are no text" : text;
  PyErr_Clear();
  Py_DECREF(answer);
  return nullptr;
}

}  // namespace polyop::ort
