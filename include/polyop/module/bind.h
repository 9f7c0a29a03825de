// Binds functions: PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("name", &function, "doc"); }
#ifndef POLYOP_MODULE_BIND_H
#define POLYOP_MODULE_BIND_H

#include <cstdio>

#include "convert.h"
#include "runner.h"

#ifndef POLYOP_PYBIND11
namespace pybind11 {

// The text of a default value, as a schema has it.
inline std::string default_text(const none&) { return "None"; }
inline std::string default_text(std::nullptr_t) { return "None"; }
inline std::string default_text(std::nullopt_t) { return "None"; }
inline std::string default_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}
inline std::string default_text(mindspore::TypeId type) { return std::to_string(static_cast<int>(type)); }
inline std::string default_text(const char* text) { return default_text(std::string(text)); }
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
std::string default_text(T number) {
  if constexpr (std::is_same_v<T, bool>) {
    return number ? "True" : "False";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(number);
  } else {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", static_cast<double>(number));
    const std::string plain = text;
    return plain.find_first_of(".en") == std::string::npos ? plain + ".0" : plain;
  }
}
template <typename T>
std::string default_text(const std::vector<T>& items) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + default_text(static_cast<T>(item));
  return text + "]";
}
template <typename T>
std::string default_text(const std::optional<T>& item) {
  return item ? default_text(*item) : "None";
}

// The name of an argument, and its default value when one is assigned.
struct arg {
  explicit arg(const char* text) : name(text) {}
  template <typename T>
  arg operator=(const T& value) const {
    arg result = *this;
    result.default_value = default_text(value);
    return result;
  }
  std::string name, default_value;
};
inline namespace literals {
inline arg operator""_a(const char* text, size_t) { return arg(text); }
}  // namespace literals

// The further arguments of m.def(): a docstring, and the names of the function's arguments.
struct Extras {
  const char* doc = "";
  const arg* args[64];
  size_t count = 0;

  void take(const char* text) { doc = text; }
  void take(const std::string& text) { doc = text.c_str(); }
  void take(const arg& one) {
    if (count < 64) args[count++] = &one;
  }
};

// The functions of a module. They and this object are never destroyed.
class module_ {
 public:
  // Binds a function, a lambda or a function object. `extra` are its docstring and its py::arg()s.
  template <typename F, typename... Extra>
  module_& def(const char* name, F&& function, const Extra&... extra) {
    Extras extras;
    (extras.take(extra), ...);
    add(name, std::forward<F>(function), signature(&function), extras);
    return *this;
  }
  // Binds a function that takes polyop values, with its schema as text. `target` must outlive the module.
  void def_values(const std::string& name, const std::string& schema, const std::string& doc,
                  const void* target, decltype(polyop_function::call) call) {
    last_ = new Entry{name, schema, doc, target, call, last_};
    ++count_;
  }
  std::string& doc() { return doc_; }
  POLYOP_COLD bool has(const std::string& name) const {
    for (const Entry* entry = last_; entry != nullptr; entry = entry->before) {
      if (entry->name == name) return true;
    }
    return false;
  }

  POLYOP_COLD const polyop_module_table* finish(const char* name) {
    auto* rows = new polyop_function[count_ + 1]();
    size_t at = count_;
    for (const Entry* entry = last_; entry != nullptr; entry = entry->before) {
      rows[--at] = {entry->name.c_str(), entry->schema.c_str(), entry->doc.c_str(),
                    entry->target,       entry->call,           polyop::free_value};
    }
    table_ = {POLYOP_MODULE_VERSION, 0, name, count_, rows, problem_.empty() ? nullptr : problem_.c_str()};
    return &table_;
  }
  void fail(const std::string& problem) { problem_ = problem; }

 private:
  using Call = int (*)(const polyop_function*, const polyop_value*, size_t, polyop_value*,
                       void (*)(const char*));
  struct Entry {
    std::string name, schema, doc;
    const void* target;
    Call call;
    Entry* before;
  };
  template <typename R, typename... A>
  struct Signature {};

  template <typename R, typename... A>
  static Signature<R, A...> signature(R (**)(A...)) {
    return {};
  }
  template <typename R, typename... A>
  static Signature<R, A...> signature(R (*)(A...)) {
    return {};
  }
  template <typename F>
  static auto signature(F*) {
    return method(&F::operator());
  }
  template <typename F, typename R, typename... A>
  static Signature<R, A...> method(R (F::*)(A...) const) {
    return {};
  }
  template <typename F, typename R, typename... A>
  static Signature<R, A...> method(R (F::*)(A...)) {
    return {};
  }

  template <typename F, typename R, typename... A>
  POLYOP_COLD void add(const char* name, F&& function, Signature<R, A...>, const Extras& extras) {
    using Stored = std::decay_t<F>;
    const std::string types[] = {polyop::Convert<std::decay_t<A>>::schema()..., std::string()};
    if constexpr (std::is_void_v<R>) {
      append(name, types, sizeof...(A), "()", extras);
    } else {
      append(name, types, sizeof...(A), polyop::Convert<std::decay_t<R>>::schema(), extras);
    }
    last_->target = new Stored(std::forward<F>(function));
    last_->call = call<Stored, R, A...>;
  }

  POLYOP_COLD void append(const char* name, const std::string* types, size_t count,
                          const std::string& returns, const Extras& extras) {
    char text[200];
    if (has(name)) {
      std::snprintf(text, sizeof text, "m.def() was given the name \"%s\" twice", name);
      fail(text);
    }
    if (extras.count != 0 && extras.count != count) {
      std::snprintf(text, sizeof text, "m.def(\"%s\") has %zu py::arg() for %zu arguments", name,
                    extras.count, count);
      fail(text);
    }
    last_ = new Entry{name, "(", extras.doc, nullptr, nullptr, last_};
    ++count_;
    std::string& schema = last_->schema;
    for (size_t i = 0; i < count; ++i) {
      if (i != 0) schema += ", ";
      schema += types[i];
      schema += ' ';
      if (i >= extras.count) {
        std::snprintf(text, sizeof text, "arg%zu", i);
        schema += text;
        continue;
      }
      schema += extras.args[i]->name;
      if (extras.args[i]->default_value.empty()) continue;
      schema += '=';
      schema += extras.args[i]->default_value;
    }
    schema += ") -> ";
    schema += returns;
  }

  template <typename F, typename R, typename... A>
  static int call(const polyop_function* self, const polyop_value* arguments, size_t count,
                  polyop_value* result, void (*fail)(const char*)) {
    try {
      if (count != sizeof...(A)) throw std::runtime_error("wrong number of arguments");
      invoke<F, R, A...>(self, arguments, result, std::index_sequence_for<A...>());
      return 0;
    } catch (const std::exception& problem) {
      fail(problem.what());
    } catch (...) {
      fail("it threw an exception that is no std::exception");
    }
    return 1;
  }

  template <typename F, typename R, typename... A, size_t... I>
  static void invoke(const polyop_function* self, const polyop_value* arguments, polyop_value* result,
                     std::index_sequence<I...>) {
    F& function = *static_cast<F*>(const_cast<void*>(self->target));
    (void)arguments;
    if constexpr (std::is_void_v<R>) {
      function(polyop::Convert<std::decay_t<A>>::in(arguments[I])...);
    } else {
      polyop::Convert<std::decay_t<R>>::out(function(polyop::Convert<std::decay_t<A>>::in(arguments[I])...),
                                            result);
    }
  }

  Entry* last_ = nullptr;
  size_t count_ = 0;
  polyop_module_table table_{};
  std::string problem_, doc_;
};
using module = module_;
inline bool hasattr(const module_& module, const char* name) { return module.has(name); }

}  // namespace pybind11
#endif

namespace polyop {

// Wraps a function, so that it returns the result of PyboostRunner::Call<OUT_NUM>.
template <int OUT_NUM, typename R, typename... A>
auto caller(R (*function)(A...)) {
  return [function](A... arguments) -> pybind11::object {
    return ms::pynative::PyboostRunner::Call<OUT_NUM>(function, arguments...);
  };
}

}  // namespace polyop

#define PYBOOST_CALLER(OUT_NUM, FUNC) ::polyop::caller<OUT_NUM>(&FUNC)

// Binds the operators of op_def. The builder writes a source that defines it; most modules have none.
#ifndef POLYOP_BINDS_DEFINITIONS
extern "C" __attribute__((weak, visibility("hidden"))) void polyop_bind_definitions(pybind11::module_& m);
#endif

#define POLYOP_TEXT_(name) #name
#define POLYOP_TEXT(name) POLYOP_TEXT_(name)

#ifndef POLYOP_PYBIND11
#define PYBIND11_MODULE(name, m, ...)                                                         \
  POLYOP_COLD static void polyop_bind_module(pybind11::module_&);                             \
  extern "C" __attribute__((visibility("default"))) const polyop_module_table* polyop_module( \
      const polyop_module_functions* functions) {                                             \
    ::polyop::functions() = functions;                                                        \
    static auto& module = *new pybind11::module_();                                           \
    static const polyop_module_table* table = nullptr;                                        \
    if (table == nullptr) {                                                                   \
      try {                                                                                   \
        ::polyop::check_functions(functions);                                                 \
        polyop_bind_module(module);                                                           \
        if (polyop_bind_definitions != nullptr) polyop_bind_definitions(module);              \
      } catch (const std::exception& problem) {                                               \
        module.fail(problem.what());                                                          \
      } catch (...) {                                                                         \
        module.fail("the module threw an exception that is no std::exception");               \
      }                                                                                       \
      table = module.finish(POLYOP_TEXT(name));                                               \
    }                                                                                         \
    return table;                                                                             \
  }                                                                                           \
  static void polyop_bind_module(pybind11::module_& m)

#endif

#endif
