#include "onnx_node.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../host_memory.h"
#include "../key.h"
#include "../locks.h"
#include "../python_lock.h"
#include "../target.h"
#include "polyop/dtype_rows.h"

namespace polyop::ort {

namespace {

struct Result {
  std::vector<int64_t> shape;
  int32_t dtype;
};
using Results = std::vector<Result>;

// The kernel of one node. The shapes of its results are asked of Python once for each set of input shapes;
// the sets used last are remembered.
struct Node {
  const Api& api;
  Target& target;
  std::string text;
  ShortLock& lock = ShortLock::of(this);
  LruTable<std::shared_ptr<const Results>> entries{};

  std::shared_ptr<const Results> find(const Key& key) {
    const std::lock_guard<ShortLock> held(lock);
    const std::shared_ptr<const Results>* found = entries.find(key);
    return found == nullptr ? nullptr : *found;
  }

  void cache(const Key& key, const std::shared_ptr<const Results>& results) {
    const std::lock_guard<ShortLock> held(lock);
    entries.add(key, results);
  }

  std::shared_ptr<const Results> results_of(const Views& inputs, std::string* error) {
    Key key;
    for (size_t i = 0; i < inputs.size(); ++i) add_tensor(key, inputs[i]);
    std::shared_ptr<const Results> cached = find(key);
    return cached != nullptr ? cached : ask(inputs, key, error);
  }

  std::shared_ptr<const Results> ask(const Views& inputs, const Key& key, std::string* error) {
    const Python python;
    if (!python) {
      *error = kPythonUnavailable;
      return nullptr;
    }
    PyObject* specs = PyList_New(0);
    for (size_t i = 0; specs != nullptr && i < inputs.size(); ++i) {
      PyObject* shape = PyTuple_New(inputs[i].ndim);
      for (int32_t k = 0; shape != nullptr && k < inputs[i].ndim; ++k) {
        PyTuple_SET_ITEM(shape, k, PyLong_FromLongLong(inputs[i].shape[k]));
      }
      PyObject* spec = shape == nullptr ? nullptr : Py_BuildValue("(Ni)", shape, inputs[i].dtype);
      if (spec == nullptr || PyList_Append(specs, spec) < 0) Py_CLEAR(specs);
      Py_XDECREF(spec);
    }
    PyObject* answer = specs == nullptr ? nullptr : taking_lock([&] {
      return PyObject_CallFunction(functions.results, "sN", text.c_str(), specs);
    });
    answer = checked_answer(answer, functions.results, error);
    if (answer == nullptr) return nullptr;
    bool cacheable = false;
    std::shared_ptr<const Results> results = read(answer, &cacheable, error);
    Py_DECREF(answer);
    if (results != nullptr && cacheable) cache(key, results);
    return results;
  }

  // Reads ([(shape, row of dtypes())], cacheable).
  static std::shared_ptr<const Results> read(PyObject* answer, bool* cacheable, std::string* error) {
    auto results = std::make_shared<Results>();
    PyObject* rows = nullptr;
    int flag = 0;
    if (!PyArg_ParseTuple(answer, "O!p", &PyList_Type, &rows, &flag)) rows = nullptr;
    for (Py_ssize_t i = 0; rows != nullptr && i < PyList_GET_SIZE(rows); ++i) {
      PyObject* shape = nullptr;
      Result result{};
      if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "O!i", &PyTuple_Type, &shape, &result.dtype)) break;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); ++k) {
        result.shape.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k)));
      }
      results->push_back(std::move(result));
    }
    *cacheable = flag != 0;
    if (!PyErr_Occurred()) return results;
    PyErr_Clear();
    *error = "the shapes of the results could not be read";
    return nullptr;
  }

  Status* add_inputs(const Context* context, Small<int64_t, 64>* sizes, Views* views) {
    size_t count = 0;
    if (Status* problem = api.input_number(context, &count)) return problem;
    for (size_t i = 0; i < count; ++i) {
      const Value* value = nullptr;
      if (Status* problem = api.input(context, i, &value)) return problem;
      if (value == nullptr) return make_status(api, "an input of a node has no name; leave it out");
      TensorInfo* info = nullptr;
      if (Status* problem = api.tensor_info(value, &info)) return problem;
      const std::unique_ptr<TensorInfo, void (*)(TensorInfo*)> owner(info, api.release_tensor_info);
      int dtype = 0;
      size_t ndim = 0;
      View view{};
      if (Status* problem = api.element_type(info, &dtype)) return problem;
      if (Status* problem = api.ndim(info, &ndim)) return problem;
      const size_t first = sizes->size();
      for (size_t k = 0; k < ndim; ++k) sizes->push(0);
      if (Status* problem = api.shape(info, sizes->data() + first, ndim)) return problem;
      view.dtype = dtype_with(&DTypeRow::onnx, dtype);
      if (view.dtype < 0)
        return make_status(api,
                           "an input has ONNX's dtype " + std::to_string(dtype) + ", which no kernel takes");
      if (Status* problem = api.data(const_cast<Value*>(value), &view.data)) return problem;
      view.ndim = static_cast<int32_t>(ndim);
      view.device = kCpu;
      views->push(view);
    }
    size_t first = 0;  // only now: `sizes` may have moved while it grew
    for (View& view : *views) {
      view.shape = sizes->data() + first;
      first += static_cast<size_t>(view.ndim);
    }
    return nullptr;
  }

  Status* add_outputs(Context* context, const Results& results, Workspaces& workspaces, Views* views) {
    size_t count = 0;
    if (Status* problem = api.output_number(context, &count)) return problem;
    if (count > results.size()) {
      return make_status(api, "a node has " + std::to_string(count) + " outputs, the operator gives " +
                                  std::to_string(results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const std::vector<int64_t>& shape = results[i].shape;
      Value* value = nullptr;
      View view{};
      view.shape = shape.data();
      view.ndim = static_cast<int32_t>(shape.size());
      view.dtype = results[i].dtype;
      view.device = kCpu;
      if (i < count) {
        if (Status* problem = api.output(context, i, shape.data(), shape.size(), &value)) return problem;
      }
      if (value != nullptr) {
        if (Status* problem = api.data(value, &view.data)) return problem;
      } else {
        size_t bytes = dtypes()[static_cast<size_t>(view.dtype)].dlpack_bits / 8;
        for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
        view.data = workspaces.allocate(bytes);
        if (view.data == nullptr) return make_status(api, "there is no memory for a result");
      }
      views->push(view);
    }
    return nullptr;
  }

  Status* run(Context* context) {
    Small<int64_t, 64> sizes;
    Views views;
    if (Status* problem = add_inputs(context, &sizes, &views)) return problem;
    const size_t inputs = views.size();
    std::string error;
    const std::shared_ptr<const Results> results = results_of(views, &error);
    if (results == nullptr) return make_status(api, error);
    HostMemory workspaces;
    if (Status* problem = add_outputs(context, *results, workspaces, &views)) return problem;
    error = target.run(views, inputs, nullptr, workspaces);
    return error.empty() ? nullptr : make_status(api, error);
  }
};

}  // namespace

Status* make_status(const Api& api, const std::string& error) {
  return api.create_status(kFailed, ("polyop: " + error).c_str());
}

void* make_node(const Api& api, const std::string& text) { return new Node{api, Target::of(text), text}; }

void drop_node(void* node) { delete static_cast<Node*>(node); }

Status* run_node(void* node, Context* context) {
  auto& self = *static_cast<Node*>(node);
  try {
    return self.run(context);
  } catch (const std::exception& problem) {
    return make_status(self.api, problem.what());
  }
}

}  // namespace polyop::ort
