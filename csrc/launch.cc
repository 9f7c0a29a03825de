#include "launch.h"

#include <exception>

namespace polyop {

namespace {
int64_t no_dims = 0;           // what a 0-d tensor's shape pointer points to
alignas(64) char no_data[64];  // what the pointer of a tensor without elements points to
}  // namespace

std::vector<DType>& dtypes() {
  static auto* table = new std::vector<DType>();  // never destroyed: it holds Python objects
  return *table;
}

void Parameters::add(const View& view) {
  data.push(view.data == nullptr ? no_data : view.data);
  ndims.push(view.ndim);
  shapes.push(view.ndim == 0 ? &no_dims : const_cast<int64_t*>(view.shape));
  dtypes.push(polyop::dtypes()[static_cast<size_t>(view.dtype)].name.c_str());
}

void Parameters::add_absent() {
  data.push(nullptr);
  ndims.push(0);
  shapes.push(&no_dims);
  dtypes.push("");
}

Outcome run_unlocked(const Launch& launch, Parameters& parameters, void* stream) {
  Outcome outcome{0, false, ""};
  forget_error();  // one that a kernel gave and did not fail with
  try {
    outcome.code = launch.kernel(static_cast<int>(parameters.data.size()), parameters.data.data(),
                                 parameters.ndims.data(), parameters.shapes.data(), parameters.dtypes.data(),
                                 stream, launch.extra->contract());
  } catch (const std::exception& problem) {
    outcome = {-1, true, std::string("a C++ exception: ") + problem.what()};
  } catch (...) {
    outcome = {-1, true, "a C++ exception that is no std::exception"};
  }
  if (outcome.code != 0 && !outcome.threw) outcome.error = take_error();
  return outcome;
}

Outcome run(const Launch& launch, Parameters& parameters, void* stream) {
  PyThreadState* state = PyEval_SaveThread();
  Outcome outcome = run_unlocked(launch, parameters, stream);
  PyEval_RestoreThread(state);
  return outcome;
}

}  // namespace polyop
