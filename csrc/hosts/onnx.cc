// ONNX Runtime's custom operators: one for each operator of the process. When a session creates the kernel of
// a node, the node's attributes become the text of a Target.
#include "onnx.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../locks.h"
#include "../python_lock.h"
#include "onnx_attributes.h"
#include "onnx_node.h"
#include "polyop/export/onnx_api.h"

namespace polyop {

namespace {

using ort::Api;
using ort::checked_answer;
using ort::functions;
using ort::kPythonUnavailable;
using ort::make_status;
using ort::Python;
using ort::Status;

struct Operator : ort::Operator {
  std::string domain, type;  // the node's domain and op type
  std::string operation;     // the operator's name in polyop
  std::vector<std::string> attributes;

  bool operator==(const Operator& other) const {
    return domain == other.domain && type == other.type && operation == other.operation &&
           attributes == other.attributes;
  }
};

// Returns (text of the Target,) for a node, or null and the text of an error.
PyObject* text_of(const Operator& op, const Api& api, const ort::Info* info, std::string* error) {
  size_t inputs = 0;
  if (Status* problem = api.node_inputs(info, &inputs)) api.release_status(problem);
  PyObject* attributes = onnx_attributes(api, info, op.attributes);
  PyObject* answer = attributes == nullptr ? nullptr : taking_lock([&] {
    return PyObject_CallFunction(functions.text, "sNn", op.operation.c_str(), attributes,
                                 static_cast<Py_ssize_t>(inputs));
  });
  return checked_answer(answer, functions.text, error);
}

Status* make_kernel(const Operator& op, const Api& api, const ort::Info* info, void** kernel) {
  std::string error, text;
  {
    const Python python;
    if (!python) return make_status(api, kPythonUnavailable);
    PyObject* answer = text_of(op, api, info, &error);
    if (answer == nullptr) return make_status(api, error);
    const char* utf8 = nullptr;
    if (PyArg_ParseTuple(answer, "s", &utf8)) text = utf8;
    PyErr_Clear();
    Py_DECREF(answer);
  }
  *kernel = ort::make_node(api, text);
  return nullptr;
}

Status* create(const ort::Operator* op, const Api* api, const ort::Info* info, void** kernel) {
  try {
    return make_kernel(*static_cast<const Operator*>(op), *api, info, kernel);
  } catch (const std::exception& problem) {
    return make_status(*api, problem.what());
  }
}

const Operator* make(Operator op) {
  op.version = ort::kVersion;
  op.name = [](const ort::Operator* self) { return static_cast<const Operator*>(self)->type.c_str(); };
  op.provider = [](const ort::Operator*) { return static_cast<const char*>(nullptr); };  // the CPU
  op.input_type = op.output_type = [](const ort::Operator*, size_t) -> int { return ort::kUnknown; };
  op.input_count = op.output_count = [](const ort::Operator*) -> size_t { return 1; };
  op.input_kind = op.output_kind = [](const ort::Operator*, size_t) -> int { return ort::kVariadic; };
  op.input_memory = [](const ort::Operator*, size_t) { return 0; };  // in the provider's memory
  op.min_inputs = op.min_outputs = [](const ort::Operator*) { return 0; };
  op.inputs_homogeneous = op.outputs_homogeneous = [](const ort::Operator*) { return 0; };
  op.destroy = ort::drop_node;
  op.create = create;
  op.compute = ort::run_node;
  return new Operator(std::move(op));  // never freed: a session may use it for as long as the process lives
}

// The operators of this process; a row is (domain, type, name, names of attributes). Equal rows of several
// calls share one operator. False with a Python error when a row cannot be read.
bool operators_of(PyObject* rows, std::vector<const Operator*>* operators) {
  static auto* registry = new std::vector<const Operator*>();  // under Python's lock
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); ++i) {
    const char *domain = nullptr, *type = nullptr, *name = nullptr;
    PyObject* attributes = nullptr;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "sssO!", &domain, &type, &name, &PyTuple_Type,
                          &attributes)) {
      return false;
    }
    Operator op{};
    op.domain = domain, op.type = type, op.operation = name;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(attributes); ++k) {
      const char* attribute = PyUnicode_AsUTF8(PyTuple_GET_ITEM(attributes, k));
      if (attribute == nullptr) return false;
      op.attributes.emplace_back(attribute);
    }
    const Operator* existing = nullptr;
    for (const Operator* candidate : *registry) {
      if (*candidate == op) existing = candidate;
    }
    if (existing == nullptr) registry->push_back(existing = make(std::move(op)));
    operators->push_back(existing);
  }
  return true;
}

using Operators = std::vector<const Operator*>;

ShortLock domains_lock;

// A domain with these operators. It is created once and never released, because sessions may use it for as
// long as the process lives.
Status* domain_of(const Api& api, const Operators& operators, ort::Domain** domain) {
  static auto* domains = new std::vector<std::pair<Operators, ort::Domain*>>();
  const std::lock_guard<ShortLock> held(domains_lock);
  for (const auto& [members, existing] : *domains) {
    if (members == operators) return *domain = existing, nullptr;
  }
  if (Status* problem = api.create_domain(operators.front()->domain.c_str(), domain)) return problem;
  for (const Operator* op : operators) {
    if (Status* problem = api.add_operator(*domain, op)) return problem;
  }
  domains->emplace_back(operators, *domain);
  return nullptr;
}

// Adds the operators to a session's options. They are sorted by domain.
Status* add(const Api& api, ort::Options* options, const Operators& all) {
  for (auto first = all.begin(); first != all.end();) {
    const auto last =
        std::find_if(first, all.end(), [&](const Operator* op) { return op->domain != (*first)->domain; });
    ort::Domain* domain = nullptr;
    if (Status* problem = domain_of(api, Operators(first, last), &domain)) return problem;
    if (Status* problem = api.add_domain(options, domain)) return problem;
    first = last;
  }
  return nullptr;
}

Status* register_all(ort::Options* options, const ort::Base* base) {
  const Api* api = base->api(ort::kVersion);
  if (api == nullptr) {
    return make_status(*base->api(1),
                       std::string("ONNX Runtime 1.16 or later is needed, this is ") + base->version());
  }
  Operators operators;
  std::string error;
  {
    const Python python;
    if (!python) return make_status(*api, kPythonUnavailable);
    PyObject* rows = checked_answer(taking_lock([&] { return PyObject_CallNoArgs(functions.rows); }),
                                    functions.rows, &error);
    if (rows == nullptr) return make_status(*api, error);
    const bool read = PyList_Check(rows) && operators_of(rows, &operators);
    Py_DECREF(rows);
    PyErr_Clear();
    if (!read) return make_status(*api, "the operators of this process could not be read");
  }
  return add(*api, options, operators);
}

PyObject* start(PyObject*, PyObject* args) {
  PyObject *rows = nullptr, *text = nullptr, *results = nullptr;
  if (!PyArg_ParseTuple(args, "OOO", &rows, &text, &results)) return nullptr;
  Python::start({rows, text, results});
  Py_RETURN_NONE;
}

PyObject* stop(PyObject*, PyObject*) {
  Python::stop();
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef onnx_methods[] = {
    {"start_onnx", start, METH_VARARGS, "Set the functions that ONNX Runtime's operators call."},
    {"stop_onnx", stop, METH_NOARGS, "Stop calls of these functions; waits for those that run."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace polyop

// The function that ONNX Runtime looks up in a library of operators.
extern "C" __attribute__((visibility("default"))) polyop::ort::Status* RegisterCustomOps(
    polyop::ort::Options* options, const polyop::ort::Base* base) {
  try {
    return polyop::register_all(options, base);
  } catch (const std::exception& problem) {
    return polyop::ort::make_status(*base->api(1), problem.what());
  }
}
