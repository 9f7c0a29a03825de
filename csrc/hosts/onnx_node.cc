#include "onnx_node.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../key.h"
#include "../target.h"

namespace polyop::ort {

namespace {

constexpr int32_t kKinds = 24;
constexpr const char* kNames[kKinds] = {
    // of rows of dtypes(), by ONNX's number
    nullptr,           "float32",     "uint8",           "int8",       "uint16",   "int16",
    "int32",           "int64",       nullptr,           "bool",       "float16",  "float64",
    "uint32",          "uint64",      "complex64",       "complex128", "bfloat16", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", nullptr,      nullptr,    nullptr};

int32_t row_of(int kind) {
  static const auto* table = [] {
    auto* made = new std::vector<int32_t>(kKinds, -1);
    for (size_t i = 0; i < kKinds; ++i) {
      for (size_t row = 0; kNames[i] != nullptr && row < dtypes().size(); ++row) {
        if (dtypes()[row].name == kNames[i]) (*made)[i] = static_cast<int32_t>(row);
      }
    }
    return made;
  }();
  return kind < 0 || kind >= kKinds ? -1 : (*table)[static_cast<size_t>(kind)];
}

struct Result {
  std::vector<int64_t> shape;
  int32_t dtype;
};
using Results = std::vector<Result>;

// Workspaces, and results that the graph has no use for.
class HostMemory : public Scratch {
 public:
  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override {
    for (void* one : all_) std::free(one);
  }
  void* allocate(size_t bytes) override {
    constexpr size_t kAlign = 64;
    void* made = std::aligned_alloc(kAlign, (bytes / kAlign + 1) * kAlign);
    if (made != nullptr) all_.push(made);
    return made;
  }

 private:
  Small<void*, 4> all_;
};

// The kernel of one node.
struct Node {
  const Api& api;
  Target& target;
  std::string text;
  std::mutex lock;
  std::vector<std::pair<std::vector<uint64_t>, std::shared_ptr<const Results>>> known;
  size_t oldest = 0;

  std::shared_ptr<const Results> find(const Key& key) {
    const std::lock_guard<std::mutex> held(lock);
    for (const auto& [sizes, results] : known) {
      if (std::equal(sizes.begin(), sizes.end(), key.data(), key.data() + key.size())) return results;
    }
    return nullptr;
  }

  void keep(const Key& key, const std::shared_ptr<const Results>& results) {
    constexpr size_t kMost = 128;
    std::vector<uint64_t> sizes(key.data(), key.data() + key.size());
    const std::lock_guard<std::mutex> held(lock);
    if (known.size() < kMost) {
      known.emplace_back(std::move(sizes), results);
    } else {
      known[oldest++ % kMost] = {std::move(sizes), results};
    }
  }

  std::shared_ptr<const Results> results_of(const Views& inputs, std::string* words) {
    Key key;
    for (size_t i = 0; i < inputs.size(); ++i) add_tensor(key, inputs[i]);
    std::shared_ptr<const Results> found = find(key);
    return found != nullptr ? found : ask(inputs, key, words);
  }

  std::shared_ptr<const Results> ask(const Views& inputs, const Key& key, std::string* words) {
    const Python python;
    if (!python) {
      *words = kNotThere;
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
    PyObject* answer =
        specs == nullptr ? nullptr : PyObject_CallFunction(functions.results, "sN", text.c_str(), specs);
    answer = answer_of(answer, functions.results, words);
    if (answer == nullptr) return nullptr;
    bool repeatable = false;
    std::shared_ptr<const Results> made = read(answer, &repeatable, words);
    Py_DECREF(answer);
    if (made != nullptr && repeatable) keep(key, made);
    return made;
  }

  // ([(shape, row of dtypes())], whether it is always so)
  static std::shared_ptr<const Results> read(PyObject* answer, bool* repeatable, std::string* words) {
    auto made = std::make_shared<Results>();
    PyObject* rows = nullptr;
    int repeats = 0;
    if (!PyArg_ParseTuple(answer, "O!p", &PyList_Type, &rows, &repeats)) rows = nullptr;
    for (Py_ssize_t i = 0; rows != nullptr && i < PyList_GET_SIZE(rows); ++i) {
      PyObject* shape = nullptr;
      Result result{};
      if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "O!i", &PyTuple_Type, &shape, &result.dtype)) break;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); ++k) {
        result.shape.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k)));
      }
      made->push_back(std::move(result));
    }
    *repeatable = repeats != 0;
    if (!PyErr_Occurred()) return made;
    PyErr_Clear();
    *words = "the sizes of the results are no numbers";
    return nullptr;
  }

  Status* add_inputs(const Context* context, Small<int64_t, 64>* sizes, Views* views) {
    size_t count = 0;
    if (Status* problem = api.input_number(context, &count)) return problem;
    for (size_t i = 0; i < count; ++i) {
      const Value* value = nullptr;
      if (Status* problem = api.input(context, i, &value)) return problem;
      if (value == nullptr) return failed(api, "an input of a node has no name; leave it out");
      TensorInfo* info = nullptr;
      if (Status* problem = api.tensor_info(value, &info)) return problem;
      const std::unique_ptr<TensorInfo, void (*)(TensorInfo*)> owner(info, api.release_tensor_info);
      int kind = 0;
      size_t ndim = 0;
      View view{};
      if (Status* problem = api.element_type(info, &kind)) return problem;
      if (Status* problem = api.ndim(info, &ndim)) return problem;
      const size_t first = sizes->size();
      for (size_t k = 0; k < ndim; ++k) sizes->push(0);
      if (Status* problem = api.shape(info, sizes->data() + first, ndim)) return problem;
      view.dtype = row_of(kind);
      if (view.dtype < 0)
        return failed(api, "an input has ONNX's dtype " + std::to_string(kind) + ", which no kernel takes");
      if (Status* problem = api.data(const_cast<Value*>(value), &view.data)) return problem;
      view.ndim = static_cast<int32_t>(ndim);
      view.device = kCpu;
      views->push(view);
    }
    size_t first = 0;  // the sizes stay where they are now
    for (View& view : *views) {
      view.shape = sizes->data() + first;
      first += static_cast<size_t>(view.ndim);
    }
    return nullptr;
  }

  Status* add_outputs(Context* context, const Results& results, Scratch& scratch, Views* views) {
    size_t count = 0;
    if (Status* problem = api.output_number(context, &count)) return problem;
    if (count > results.size()) {
      return failed(api, "a node has " + std::to_string(count) + " outputs, the operator gives " +
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
        view.data = scratch.allocate(bytes);
        if (view.data == nullptr) return failed(api, "there is no memory for a result");
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
    std::string words;
    const std::shared_ptr<const Results> results = results_of(views, &words);
    if (results == nullptr) return failed(api, words);
    HostMemory memory;
    if (Status* problem = add_outputs(context, *results, memory, &views)) return problem;
    words = target.run(views, inputs, nullptr, memory);
    return words.empty() ? nullptr : failed(api, words);
  }
};

}  // namespace

Status* failed(const Api& api, const std::string& words) {
  return api.create_status(kFailed, ("polyop: " + words).c_str());
}

void* make_node(const Api& api, const std::string& text) {
  return new Node{api, Target::of(text), text, {}, {}, 0};
}

void drop_node(void* node) { delete static_cast<Node*>(node); }

Status* run_node(void* node, Context* context) {
  auto& self = *static_cast<Node*>(node);
  try {
    return self.run(context);
  } catch (const std::exception& problem) {
    return failed(self.api, problem.what());
  }
}

}  // namespace polyop::ort
