// The Python module polyop._core. The only file that includes nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "call.h"
#include "dense.h"
#include "eager.h"
#include "hosts/host.h"
#include "hosts/mindspore.h"
#include "hosts/onnx.h"
#include "hosts/xla.h"
#include "hosts/xla_kernel.h"
#include "library.h"
#include "module/ambient.h"
#include "module/function.h"
#include "module/run.h"
#include "openmp.h"
#include "planned.h"
#include "target.h"
#include "thread_count.h"
#include "tvm_ffi.h"

namespace nb = nanobind;
using namespace polyop;

namespace {

constexpr const char* kMainInterpreter =
    "polyop: a subinterpreter cannot use it, because its operators and those of the frameworks belong to the "
    "whole process; import it in the main interpreter, or use processes";

// The text of a variable in os.environ. Needs Python's lock: it is first called when a library is opened.
std::string python_variable(const char* name) {
  try {
    const nb::module_ os = nb::module_::import_("os");
    const nb::object text = os.attr("environ").attr("get")(name, "");
    return nb::cast<nb::bytes>(os.attr("fsencode")(text)).c_str();
  } catch (const nb::python_error&) {  // Python is ending, or os.environ was replaced
    return process_variable(name);
  }
}

// Opens a library by a Python path. A path may have any bytes but NUL; a str has them as surrogates.
uintptr_t open_path(const nb::object& path, int file) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const auto owner = nb::steal<nb::bytes>(bytes);
  try {
    return open_library(owner.c_str(), file);
  } catch (const std::runtime_error& problem) {  // the loader quotes the path, which need not be UTF-8
    PyErr_SetObject(PyExc_RuntimeError, nb::steal(PyUnicode_DecodeFSDefault(problem.what())).ptr());
    throw nb::python_error();
  }
}

// Returns the address of a symbol of the library itself, or 0. A name with a NUL has no symbol: C would cut
// it off there.
uintptr_t find_name(uintptr_t library, const nb::str& name) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) PyErr_Clear();
  if (text == nullptr || std::strlen(text) != static_cast<size_t>(size)) return 0;
  return find_symbol(library, text);
}

using PySpec = std::pair<std::vector<int64_t>, std::string>;  // (shape, dtype name)

void add_item(Attribute& attribute, nb::handle value) {
  if (PyBool_Check(value.ptr())) {
    attribute.add(nb::cast<bool>(value));
  } else if (PyLong_Check(value.ptr())) {
    attribute.add(nb::cast<int64_t>(value));
  } else if (PyFloat_Check(value.ptr())) {
    attribute.add(nb::cast<double>(value));
  } else if (PyUnicode_Check(value.ptr())) {
    const auto text = nb::cast<std::string>(value);
    if (text.find('\0') != std::string::npos) throw nb::type_error("a text with a NUL cannot reach a kernel");
    attribute.add(text);
  } else {
    throw nb::type_error(
        "an attribute is None, a bool, int, float, str, or a list of these, at most two deep");
  }
}

bool is_list(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

// The items of a list have one type, except that ints may be mixed with floats.
void add_items(Attribute& attribute, nb::handle list) {
  for (nb::handle item : list) {
    const int32_t before = attribute.kind;
    const bool numbers = before == POLYOP_INT || before == POLYOP_FLOAT;
    add_item(attribute, item);
    const bool number = attribute.kind == POLYOP_INT || attribute.kind == POLYOP_FLOAT;
    const bool same = before == attribute.kind && !(PyBool_Check(item.ptr()) && before != POLYOP_BOOL);
    if (before != POLYOP_NONE && !same && !(numbers && number && !PyBool_Check(item.ptr()))) {
      throw nb::type_error("the items of a list attribute must be of one type");
    }
  }
}

Attribute attribute_of(nb::handle value) {
  Attribute attribute;
  if (value.is_none()) return attribute;
  if (!is_list(value)) {
    add_item(attribute, value);
    return attribute;
  }
  size_t list_count = 0;
  for (nb::handle item : value) list_count += is_list(item) ? 1 : 0;
  if (list_count == 0) {
    attribute.depth = 1;
    add_items(attribute, value);
    return attribute;
  }
  if (list_count != nb::len(value)) throw nb::type_error("a list attribute holds lists or values, not both");
  attribute.depth = 2;
  for (nb::handle item : value) {
    attribute.row_lengths.push_back(nb::len(item));
    add_items(attribute, item);
  }
  return attribute;
}

std::shared_ptr<Extra> make_extra(const nb::dict& attributes, const std::string& strings) {
  std::map<std::string, Attribute> converted;
  for (auto [name, value] : attributes) converted.emplace(nb::cast<std::string>(name), attribute_of(value));
  const Strings kind = strings == "old" ? Strings::kOld : strings == "new" ? Strings::kNew : Strings::kNone;
  return std::make_shared<Extra>(std::move(converted), kind);
}

std::vector<TensorSpec> specs_of(const std::vector<PySpec>& specs) {
  std::vector<TensorSpec> converted;
  for (const PySpec& spec : specs) converted.push_back({spec.first, spec.second});
  return converted;
}

Launch make_launch(uintptr_t address, const std::vector<std::pair<std::vector<int64_t>, int32_t>>& outputs,
                   std::shared_ptr<Extra> extra, const std::string& label) {
  Launch launch;
  launch.label = label;
  launch.kernel = reinterpret_cast<polyop_kernel>(address);
  for (const auto& output : outputs) launch.outputs.push_back({output.first, output.second});
  launch.extra = std::move(extra);
  return launch;
}

using PyOutputs = std::vector<std::pair<std::vector<int64_t>, int32_t>>;  // (shape, row of dtypes())
using PyXlaAttribute = std::tuple<std::string, std::string, nb::bytes, size_t, bool>;

Launch make_handler_launch(uintptr_t handler, const std::vector<std::string>& tensors, size_t inputs,
                           const PyOutputs& outputs, const std::vector<PyXlaAttribute>& attributes, bool cuda,
                           const std::string& label) {
  std::vector<Output> results;
  for (const auto& [shape, dtype] : outputs) results.push_back({shape, dtype});
  std::vector<XlaAttribute> converted;
  for (const auto& [name, dtype, bytes, count, scalar] : attributes) {
    converted.push_back({name, dtype, std::string(bytes.c_str(), bytes.size()), count, scalar});
  }
  return make_xla_launch(handler, tensors, inputs, std::move(results), std::move(converted), cuda, label);
}

Launch make_tvm_ffi_launch(
    uintptr_t symbol, uintptr_t object, uintptr_t runtime,
    const std::tuple<std::vector<int32_t>, size_t, std::vector<std::string>>& signature,
    const std::vector<std::pair<std::vector<int64_t>, int32_t>>& outputs, std::shared_ptr<Extra> extra,
    const std::string& label) {
  const auto& [dtypes, inputs, attributes] = signature;
  const tvm_ffi::Signature arguments = {dtypes, inputs, attributes};
  Launch launch = make_launch(0, outputs, std::move(extra), label);
  launch.tvm_ffi =
      std::make_shared<const tvm_ffi::Function>(symbol, object, runtime, arguments, launch.extra.get());
  return launch;
}

Launch make_module_launch(uintptr_t address, const std::string& kinds, const nb::tuple& values,
                          const std::vector<std::pair<std::string, bool>>& tensors,
                          const std::string& label) {
  auto function =
      module::Function::make(reinterpret_cast<const polyop_function*>(address), kinds, values.ptr());
  if (function == nullptr) throw nb::python_error();
  auto writable = std::const_pointer_cast<module::Function>(function);
  for (const auto& [name, declared] : tensors) {
    writable->names.push_back(name);
    writable->declared.push_back(declared);
  }
  Launch launch;
  launch.label = label;
  launch.function = std::move(writable);
  return launch;
}

Launch with_rows(const Launch& launch, const std::vector<std::pair<size_t, std::vector<int64_t>>>& tensors) {
  Launch result = launch;
  for (const auto& [parameter, shape] : tensors) result.in_rows.push_back({parameter, shape});
  return result;
}

using PyTensor = std::tuple<uintptr_t, std::vector<int64_t>, int32_t>;  // (pointer, shape, row of dtypes())

// Calls a C function with pointers that mean something to it alone. A row of -1 is an absent tensor.
nb::tuple call_raw(const Launch& launch, const std::vector<PyTensor>& tensors, uintptr_t stream) {
  if (launch.kernel == nullptr) throw nb::type_error("only a C function takes pointers");
  Parameters parameters;
  for (const auto& [pointer, shape, dtype] : tensors) {
    if (dtype < 0) {
      parameters.add_absent();
      continue;
    }
    View view{};
    view.data = reinterpret_cast<void*>(pointer);
    view.shape = shape.data();
    view.ndim = static_cast<int32_t>(shape.size());
    view.dtype = dtype;
    parameters.add(view);
  }
  parameters.dtypes.push(nullptr);
  DenseCopies none;
  const Outcome outcome = run(launch, parameters, reinterpret_cast<void*>(stream), none);
  if (outcome.interrupted) throw nb::python_error();
  const auto length = static_cast<Py_ssize_t>(outcome.error.size());
  PyObject* text = PyUnicode_DecodeUTF8(outcome.error.data(), length, "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::make_tuple(outcome.code, nb::steal(text), outcome.threw);
}

const Launch* unwrap(PyObject* object) {
  if (!nb::isinstance<Launch>(object)) {
    PyErr_SetString(PyExc_TypeError, "polyop: _prepare must answer (Launch, bool) or None");
    return nullptr;
  }
  return nb::inst_ptr<Launch>(object);
}

void set_dtypes(const std::vector<nb::tuple>& rows) {
  for (const nb::tuple& row : rows) {
    nb::object numpy = row[3];
    dtypes().push_back({nb::cast<std::string>(row[0]), nb::cast<uint8_t>(row[1]), nb::cast<uint8_t>(row[2]),
                        numpy.release().ptr(), nb::cast<int32_t>(row[4])});
  }
  if (dtypes().size() < 6 || dtypes()[5].name != "uint8")
    throw nb::value_error("row 5 of the dtypes must be uint8");
  if (!start_numpy()) throw nb::python_error();
}

std::string start_torch_host(nb::object torch, const std::string& c10, const std::string& libtorch,
                             const std::string& libtorch_python) {
  PyObject* missing = nullptr;
  if (!start_torch(torch.ptr(), c10.c_str(), libtorch.c_str(), libtorch_python.c_str(), &missing))
    throw nb::python_error();
  return nb::cast<std::string>(nb::steal(missing));
}

}  // namespace

NB_MODULE(_core, m) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) throw nb::import_error(kMainInterpreter);
  m.doc() = "The native call path of polyop.";
  nb::set_leak_warnings(false);  // registered operators live until the process ends
  nb::class_<Extra>(m, "Extra", "Attributes, workspaces and kernel data behind a kernel's extra pointer.")
      .def("workspaces", &Extra::workspaces,
           "Return the sizes of the workspaces that Init requested, in bytes.");
  m.def(
      "check_interpreter",
      [] {
        if (PyInterpreterState_Get() != PyInterpreterState_Main()) throw nb::import_error(kMainInterpreter);
      },
      "Raise ImportError in a subinterpreter.");
  m.def("make_extra", &make_extra, nb::arg("attributes"), nb::arg("strings") = "",
        "Return an Extra with these attributes. strings: \"old\" or \"new\" for MindSpore's object.");
  nb::class_<Launch>(m, "Launch", "A kernel chosen and prepared for given input specs.")
      .def("call_raw", &call_raw, nb::arg("tensors"), nb::arg("stream"),
           "Call a C function with (pointer, shape, row of the dtype table; -1: absent) for each input and "
           "output; return its code, the text of the error, and whether it threw.");
  m.def("make_launch", &make_launch, nb::arg("address"), nb::arg("outputs"), nb::arg("extra"),
        nb::arg("label"), "Return a Launch; outputs are (shape, row of the dtype table).");
  m.def("with_rows", &with_rows, nb::arg("launch"), nb::arg("tensors"),
        "Return a Launch of a kernel that reads tensors in rows: (parameter, shape of the dense tensor).");
  m.def("make_tvm_ffi_launch", &make_tvm_ffi_launch, nb::arg("symbol"), nb::arg("function"),
        nb::arg("runtime"), nb::arg("signature"), nb::arg("outputs"), nb::arg("extra"), nb::arg("label"),
        "Return a Launch of a tvm-ffi function, a symbol or an object; `runtime` is the handle of "
        "libtvm_ffi.so. The signature is (rows of the dtypes of all tensors, how many are inputs, names of "
        "attributes).");
  m.def("make_module_launch", &make_module_launch, nb::arg("function"), nb::arg("kinds"), nb::arg("values"),
        nb::arg("tensors"), nb::arg("label"),
        "Return a Launch of a C++ module's function. For each tensor, `tensors` has the name of its argument "
        "and whether the schema declares it as written.");
  m.def(
      "open_library", &open_path, nb::arg("path"), nb::arg("file") = -1,
      "Open a library, from a file descriptor when one is given, and return its handle. Raises RuntimeError "
      "with the loader's text.");
  m.def("find_symbol", &find_name, nb::arg("library"), nb::arg("name"),
        "Return the address of a symbol that the library itself defines, or 0.");
  m.def(
      "call_init",
      [](uintptr_t address, const std::vector<PySpec>& specs, Extra& extra) {
        const int code = call_init(address, specs_of(specs), extra);
        const std::string text = code == 0 ? std::string() : take_error();
        PyObject* decoded =
            PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
        if (decoded == nullptr) throw nb::python_error();
        return nb::make_tuple(code, nb::steal(decoded));
      },
      nb::arg("address"), nb::arg("specs"), nb::arg("extra"),
      "Run <Func>Init; return its code and error text.");
  m.def(
      "call_infer_shape",
      [](uintptr_t address, const std::vector<PySpec>& inputs, Extra& extra, bool several) {
        return call_infer_shape(address, specs_of(inputs), extra, several);
      },
      nb::arg("address"), nb::arg("inputs"), nb::arg("extra"), nb::arg("several"), "Run <Func>InferShape.");
  m.def("call_infer_type", &call_infer_type, nb::arg("address"), nb::arg("types"), nb::arg("extra"),
        nb::arg("several"), "Run <Func>InferType on TypeId numbers.");
  m.def("set_dtypes", &set_dtypes, nb::arg("rows"),
        "Set the dtype table: (name, DLPack code, bits, np.dtype, TypeId).");
  m.def("start_torch", &start_torch_host, nb::arg("torch"), nb::arg("c10"), nb::arg("libtorch"),
        nb::arg("libtorch_python"),
        "Start the PyTorch host; return the symbols that are missing for the fast call.");
  m.def(
      "locate_keys",
      [](const std::vector<std::tuple<nb::object, uint64_t, uint64_t>>& rows, uint64_t unusual) {
        std::vector<TensorSample> samples;
        for (const auto& [tensor, implementation, keys] : rows)
          samples.push_back({tensor.ptr(), implementation, keys});
        locate_keys(samples, unusual);
      },
      nb::arg("samples"), nb::arg("unusual"),
      "Find where tensors keep their dispatch keys; samples are (tensor, _cdata, raw key set).");
  m.def("note_inference_mode", &note_inference_mode,
        "Note the dispatch keys of inference mode; call it inside that mode.");
  m.def(
      "set_resolver", [](const nb::object& function) { Target::set_resolver(function.ptr(), unwrap); },
      nb::arg("resolver"), "Set the function that resolves the text of a call; see csrc/target.h.");
  m.def(
      "xla_handler",
      [](const std::string& platform) {
        PyObject* capsule = xla_handler(platform.c_str());
        if (capsule == nullptr) throw nb::python_error();
        return nb::steal(capsule);
      },
      nb::arg("platform"), "Return a capsule with the handler of XLA's custom calls.");
  m.def(
      "xla_metadata",
      [](uintptr_t handler) {
        const XlaMetadata metadata = xla_metadata(handler);
        return nb::make_tuple(metadata.major, metadata.minor, metadata.stateful);
      },
      nb::arg("handler"), "Return a handler's version (major, minor) and whether it has a state.");
  m.def("make_xla_launch", &make_handler_launch, nb::arg("handler"), nb::arg("tensors"), nb::arg("inputs"),
        nb::arg("outputs"), nb::arg("attributes"), nb::arg("cuda"), nb::arg("label"),
        "Return a Launch of an XLA FFI handler; attributes are (name, dtype, bytes, count, scalar).");
  m.def(
      "symbol_at",
      [](uintptr_t address) {
        const Place place = place_of(address);
        return nb::make_tuple(nb::steal(PyUnicode_DecodeFSDefault(place.file.c_str())), place.symbol,
                              place.offset);
      },
      nb::arg("address"), "Return the file, the symbol and the offset of code; empty texts if unknown.");
  m.def("pretend_xla_version", &pretend_xla_version, nb::arg("major"), nb::arg("minor"),
        "Report another version of XLA's interface to the runtime, for tests.");
  set_environment(&python_variable);
  m.def("thread_count", &thread_count, "Return how many threads a loop may use.");
  m.def("openmp_loops", &openmp_loops, "Return how many loops ran on the OpenMP threads of a framework.");
  m.def("set_thread_count", &set_thread_count, nb::arg("count"),
        "Set how many threads a loop may use: 1 to MOST_THREADS.");
  m.def(
      "unusable_variable",
      []() -> nb::object {
        const UnusableVariable* unusable = unusable_variable();
        if (unusable == nullptr) return nb::none();
        const auto size = static_cast<Py_ssize_t>(unusable->text.size());
        const nb::object text = nb::steal(PyUnicode_DecodeFSDefaultAndSize(unusable->text.data(), size));
        return nb::make_tuple(unusable->variable, text);
      },
      "Return (variable, text) when an environment variable has no usable thread count, else None.");
  m.attr("MOST_THREADS") = kMaxThreads;
  m.attr("ABI_VERSION") = POLYOP_ABI_VERSION;
  if (PyModule_AddFunctions(m.ptr(), module::methods) < 0) throw nb::python_error();
  if (PyModule_AddFunctions(m.ptr(), mindspore_methods) < 0) throw nb::python_error();
  if (PyModule_AddFunctions(m.ptr(), onnx_methods) < 0) throw nb::python_error();
  nb::object pull = m.attr("pull");
  m.attr("pull_method") =
      nb::steal(PyInstanceMethod_New(pull.ptr()));  // binds to its instance, as a Python function does
  static PyMethodDef eager = {"set_eager_type", set_eager_type, METH_O, "Set the type of JAX's arrays."};
  m.attr("set_eager_type") = nb::steal(PyCFunction_New(&eager, nullptr));
  static PyMethodDef backward = {
      "planned_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(planned_backward)),
      METH_FASTCALL, "The backward of an autograd.Function, by its plan."};
  nb::object planned = nb::steal(PyCFunction_New(&backward, nullptr));
  m.attr("planned_backward_method") = nb::steal(PyInstanceMethod_New(planned.ptr()));
  m.attr("python_functions") = nb::steal(module::python_functions());
  PyObject* type = make_call_type(unwrap);
  if (type == nullptr) throw nb::python_error();
  m.attr("Call") = nb::steal(type);
}
