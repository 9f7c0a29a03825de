// Included first by sources that use Python's API: releasing Python's lock in a thread that does not hold it
// does nothing, where PyEval_SaveThread would end the process. polyop and PyTorch call operators without the
// lock, and pybind11::gil_scoped_release, Py_BEGIN_ALLOW_THREADS and their like are right in a function that
// Python calls. The library is linked with --wrap, so its own calls come here, whatever header makes them.
#ifndef POLYOP_PYTHON_UNLOCKED_H
#define POLYOP_PYTHON_UNLOCKED_H

#ifdef __cplusplus
extern "C" {
#endif

struct _ts;  // PyThreadState, without Python.h
int PyGILState_Check(void);
struct _ts* __real_PyEval_SaveThread(void);
void __real_PyEval_RestoreThread(struct _ts* state);
struct _ts* __wrap_PyEval_SaveThread(void);
void __wrap_PyEval_RestoreThread(struct _ts* state);

__attribute__((weak, visibility("hidden"))) struct _ts* __wrap_PyEval_SaveThread(void) {
  return PyGILState_Check() != 0 ? __real_PyEval_SaveThread() : 0;
}

__attribute__((weak, visibility("hidden"))) void __wrap_PyEval_RestoreThread(struct _ts* state) {
  if (state != 0) __real_PyEval_RestoreThread(state);
}

#ifdef __cplusplus
}
#endif

#endif
