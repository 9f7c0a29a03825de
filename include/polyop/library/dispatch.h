// Chooses the function of an operator that runs, and calls operators from C++.
#ifndef POLYOP_LIBRARY_DISPATCH_H
#define POLYOP_LIBRARY_DISPATCH_H

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "../module/std.h"
#include "function.h"
#include "registry.h"

namespace polyop {
namespace library __attribute__((visibility("hidden"))) {

  // Calls `visit` with each tensor among values, until it returns true.
  template <typename Visit>
  bool any_tensor(const polyop_value* values, size_t count, const Visit& visit) {
    for (size_t i = 0; i < count; ++i) {
      const polyop_value& value = values[i];
      if (value.kind == POLYOP_VALUE_TENSOR && value.as.tensor != nullptr && visit(value.as.tensor))
        return true;
      if (value.kind == POLYOP_VALUE_LIST && any_tensor(value.as.items, value.count, visit)) return true;
    }
    return false;
  }

  inline bool rehearses() {
    const char* value = std::getenv("POLYOP_ASCEND");
    return value != nullptr && std::strcmp(value, "rehearse") == 0;
  }

  constexpr int32_t kCPU = 1, kCUDA = 2;  // DLPack's numbers

  inline const polyop_function* device_kernel(const Operator& op, int32_t device, Key first) {
    const polyop_function* const* kernels = op.kernels + first;
    if (device == kCUDA) return kernels[kKeyCUDA];
    if (device != kCPU) return kernels[kKeyPrivateUse1];
    if (kernels[kKeyPrivateUse1] != nullptr && rehearses()) return kernels[kKeyPrivateUse1];
    return kernels[kKeyCPU];
  }

  // Chooses the function for these arguments: that of the Autograd key when a gradient is required, that of
  // Meta while shapes are derived, else that of the device. Throws std::runtime_error that lists the keys of
  // the operator.
  inline const polyop_function* select(const Operator& op, const polyop_value* arguments, size_t count,
                                       bool* is_kernel) {
    int32_t device = kCPU;
    bool requires_gradient = false, first = true;
    any_tensor(arguments, count, [&](const polyop_tensor* tensor) {
      if (first) device = tensor->device_type;
      first = false;
      requires_gradient = requires_gradient || tensor->needs_gradient != 0;
      return false;
    });
    const polyop_function* gradient = device_kernel(op, device, kKeyAutogradCPU);
    if (gradient == nullptr) gradient = op.kernels[kKeyAutograd];
    if (gradient != nullptr && requires_gradient && forward_depth() == 0) return gradient;
    *is_kernel = true;
    if (op.kernels[kKeyMeta] != nullptr && deriving()) return op.kernels[kKeyMeta];
    const polyop_function* kernel = device_kernel(op, device, kKeyCPU);
    if (kernel != nullptr) return kernel;
    *is_kernel = false;
    if (op.kernels[kKeyComposite] != nullptr) return op.kernels[kKeyComposite];
    if (gradient != nullptr && forward_depth() == 0) return gradient;
    std::string registered_keys;
    for (int key = 0; key < kKeys; ++key) {
      if (op.kernels[key] != nullptr)
        registered_keys += (registered_keys.empty() ? "" : ", ") + std::string(kKeyNames[key]);
    }
    const char* name = device == kCPU ? "CPU" : device == kCUDA ? "CUDA" : "PrivateUse1";
    throw std::runtime_error(op.name + " has no implementation for " + name + "; it has " +
                             (registered_keys.empty() ? "none" : "those for " + registered_keys));
  }

  // The arguments of a kernel. With `dense`, strided tensors are replaced by dense copies. Tells polyop which
  // tensors the schema declares as written.
  class Prepared {
   public:
    Prepared(const Operator& op, bool dense, const polyop_value* arguments, size_t count)
        : values_(arguments, arguments + count) {
      std::vector<polyop_tensor*> written;
      for (size_t i = 0; i < count; ++i) {
        if (dense) make_dense(&values_[i]);
        if (i >= 64 || (op.written >> i & 1) == 0) continue;
        any_tensor(&values_[i], 1, [&](polyop_tensor* tensor) {
          written.push_back(tensor);
          return false;
        });
      }
      if (written.empty()) return;
      void* workspace = nullptr;
      int32_t run = 0;
      check(functions()->begin(op.name.c_str(), nullptr, 0, written.data(), written.size(), 0, &workspace,
                               &run));
      if (run != 0) functions()->end();
    }
    const polyop_value* values() const { return values_.data(); }

   private:
    void make_dense(polyop_value* value) {
      if (value->kind == POLYOP_VALUE_TENSOR && value->as.tensor != nullptr &&
          value->as.tensor->contiguous == 0) {
        copies_.push_back(Tensor::share(value->as.tensor).contiguous());
        value->as.tensor = copies_.back().handle();
      }
      if (value->kind != POLYOP_VALUE_LIST || !any_tensor(value, 1, is_strided)) return;
      lists_.emplace_back(value->as.items, value->as.items + value->count);
      value->as.items = lists_.back().data();
      for (size_t i = 0; i < value->count; ++i) make_dense(&value->as.items[i]);
    }
    static bool is_strided(const polyop_tensor* tensor) { return tensor->contiguous == 0; }

    std::vector<polyop_value> values_;
    std::deque<std::vector<polyop_value>> lists_;
    std::vector<Tensor> copies_;
  };

  // Tells polyop, while shapes are derived, that a kernel computes these results from these arguments. The
  // Meta function runs in place of the kernel, and does not tell.
  inline void announce_kernel(const Operator& op, const polyop_value* arguments, size_t count,
                              const polyop_value* result) {
    std::vector<polyop_tensor*> from, to;
    any_tensor(arguments, count, [&](polyop_tensor* tensor) {
      from.push_back(tensor);
      return false;
    });
    any_tensor(result, 1, [&](polyop_tensor* tensor) {
      if (std::find(from.begin(), from.end(), tensor) == from.end()) to.push_back(tensor);
      return false;
    });
    void* workspace = nullptr;
    int32_t run = 0;
    check(functions()->begin(op.name.c_str(), from.data(), from.size(), to.data(), to.size(), 0, &workspace,
                             &run));
    if (run != 0) functions()->end();
  }

  // polyop_function::call of an operator: chooses a function and calls it.
  inline int dispatch(const polyop_function* self, const polyop_value* arguments, size_t count,
                      polyop_value* result, void (*fail)(const char*)) {
    try {
      const auto& op = *static_cast<const Operator*>(self->target);
      bool is_kernel = false;
      const polyop_function* chosen = select(op, arguments, count, &is_kernel);
      if (!is_kernel) return chosen->call(chosen, arguments, count, result, fail);
      const bool dense = !static_cast<const KernelBase*>(chosen->target)->takes_strides;
      const auto is_strided = [](const polyop_tensor* tensor) { return tensor->contiguous == 0; };
      const bool meta = chosen == op.kernels[kKeyMeta];
      if (!meta && op.written == 0 && !(dense && any_tensor(arguments, count, is_strided))) {
        return chosen->call(chosen, arguments, count, result, fail);
      }
      const Prepared prepared(op, dense, arguments, count);
      const int code = chosen->call(chosen, prepared.values(), count, result, fail);
      if (code == 0 && meta) announce_kernel(op, prepared.values(), count, result);
      return code;
    } catch (const std::exception& problem) {
      fail(problem.what());
    } catch (...) {
      fail("it threw an exception that is no std::exception");
    }
    return 1;
  }

  // The tables of the other libraries in the process. polyop links each library with all others.
  struct Linked {
    const polyop_module_table* table;
    Linked* next;
    static std::atomic<Linked*>& first() {
      static std::atomic<Linked*> linked{nullptr};
      return linked;
    }
  };

  // The two rows of an operator in a table: the schema's, which is called, and one of an implementation,
  // whose schema has the C++ types.
  struct OperatorRows {
    const polyop_function* called = nullptr;
    const polyop_function* typed = nullptr;
  };
  POLYOP_COLD inline OperatorRows find(const polyop_module_table& table, const std::string& name) {
    OperatorRows rows;
    for (size_t i = 0; i < table.count; ++i) {
      const polyop_function& row = table.functions[i];
      if (name != row.name) continue;
      if (std::strncmp(row.doc, "schema\n", 7) == 0) rows.called = &row;
      if (std::strncmp(row.doc, "implementation\n", 15) == 0) rows.typed = &row;
    }
    return rows;
  }
  POLYOP_COLD inline OperatorRows find_operator(const std::string& name) {
    OperatorRows rows = find(*Registry::get().table(), name);
    for (Linked* library = Linked::first(); rows.called == nullptr && library != nullptr;
         library = library->next) {
      rows = find(*library->table, name);
    }
    if (rows.called == nullptr) {
      throw std::runtime_error("no library that is loaded defines the operator " + name);
    }
    return rows;
  }

}  // namespace library
}  // namespace polyop

namespace polyop {

template <typename F>
class __attribute__((visibility("hidden"))) TypedOperatorHandle;

// An operator that is called with C++ values; see Dispatcher.
template <typename R, typename... A>
class __attribute__((visibility("hidden"))) TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(const polyop_function* row) : row_(row) {}
  // Calls the operator. Throws std::runtime_error with its text.
  R call(A... arguments) const {
    polyop_value values[sizeof...(A) + 1] = {};
    size_t i = 0;
    (Convert<std::decay_t<A>>::out(arguments, &values[i++]), ...);
    Values owner{values, sizeof...(A)};
    polyop_value result{};
    if (row_->call(row_, values, sizeof...(A), &result, functions()->fail) != 0) {
      throw std::runtime_error(functions()->error());
    }
    const Result result_owner{row_, &result};
    if constexpr (!std::is_void_v<R>) return Convert<std::decay_t<R>>::in(result);
  }

 private:
  struct Values {
    polyop_value* values;
    size_t count;
    ~Values() {
      for (size_t i = 0; i < count; ++i) {
        release_tensors(&values[i]);
        free_value(&values[i]);
      }
    }
  };
  struct Result {
    const polyop_function* row;
    polyop_value* value;
    ~Result() {
      release_tensors(value);
      row->free_result(value);
    }
  };
  const polyop_function* row_;
};

class __attribute__((visibility("hidden"))) OperatorHandle {
 public:
  OperatorHandle(std::string name, library::OperatorRows rows) : name_(std::move(name)), rows_(rows) {}
  // The operator as a function of type F. Throws std::runtime_error when the implementation has another type.
  template <typename F>
  TypedOperatorHandle<F> typed() const {
    const std::string requested = library::Types<F>::text();
    if (rows_.typed != nullptr && requested != rows_.typed->schema) {
      throw std::runtime_error(name_ + " is " + rows_.typed->schema + " in C++, and typed<> says " +
                               requested);
    }
    return TypedOperatorHandle<F>(rows_.called);
  }

 private:
  std::string name_;
  library::OperatorRows rows_;
};

// Finds operators by name: Dispatcher::singleton().findSchemaOrThrow("ns::name", "").typed<F>().call(...).
class __attribute__((visibility("hidden"))) Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher dispatcher;
    return dispatcher;
  }
  OperatorHandle findSchemaOrThrow(const std::string& name, const std::string& overload) const {
    const std::string full_name = overload.empty() ? name : name + "." + overload;
    return {full_name, library::find_operator(full_name)};
  }
};

}  // namespace polyop

#endif
