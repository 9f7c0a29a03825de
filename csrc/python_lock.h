// Taking Python's lock in a thread that may still run when Python ends, as a daemon thread does.
//
// Such a thread never gets the lock again. Python 3.14 lets it wait for the end of the process. Older ones
// end it by pthread_exit, which unwinds the stack: that calls std::terminate in a destructor, and runs
// destructors that release Python's objects without the lock. So whatever may take the lock, in C++ and below
// it in Python's own code, goes through these functions. They wait for the end of the process in every
// version.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace polyop {

// Runs `work`, which may take Python's lock, and does not return when Python has ended.
template <typename Work>
auto taking_lock(Work work) -> decltype(work()) {
#if defined(__GLIBCXX__)
  try {
    return work();
  } catch (const abi::__forced_unwind&) {
    if (Py_IsInitialized() != 0) throw;  // the thread was cancelled by somebody else
    for (;;) pause();
  }
#else
  return work();
#endif
}

// PyEval_RestoreThread and PyGILState_Ensure.
inline void retake_lock(PyThreadState* state) {
  taking_lock([state] { PyEval_RestoreThread(state); });
}
inline PyGILState_STATE ensure_lock() {
  return taking_lock([] { return PyGILState_Ensure(); });
}

}  // namespace polyop
