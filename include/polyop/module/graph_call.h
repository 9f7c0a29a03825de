// Registers operators of graph mode, and makes them functions of the module.
#ifndef POLYOP_MODULE_GRAPH_CALL_H
#define POLYOP_MODULE_GRAPH_CALL_H

#include <algorithm>
#include <functional>
#include <map>

#include "../ms_extension/api.h"
#include "graph_infer.h"
#include "graph_kernel.h"

// Hidden symbols: each library has its own registry, whatever other libraries the process has loaded.
#define POLYOP_HIDDEN __attribute__((visibility("hidden")))

namespace polyop::graph {

// The op_def of an operator. The builder writes it as C++.
struct Definition {
  std::string name;      // the name in the registration macro
  std::string function;  // the name that programs call
  std::string schema;    // "(Tensor(a!) input, Tensor other, Scalar alpha=1) -> Tensor(a!)"
  std::string doc;
  std::vector<int> inplace;                 // for each output: the index of the argument that it is, or -1
  std::vector<size_t> written;              // indices of the arguments that are written
  std::vector<std::vector<size_t>> groups;  // indices of arguments that are cast to a common dtype
  bool list = false;                        // the outputs are one list; InferShape() decides its length
};

// Everything that sources register for an operator.
struct Registered {
  const mindspore::ops::OpFuncImpl* infer = nullptr;
  std::function<mindspore::kernel::KernelModPtr()> create;
  std::shared_ptr<Definition> definition;                           // null when op_def has it
  void (*define)(pybind11::module_&, const Definition&) = nullptr;  // binds `definition`
  bool is_complete() const { return infer != nullptr && create != nullptr; }
};
POLYOP_HIDDEN inline std::map<std::string, Registered>& registered() {
  static std::map<std::string, Registered> all;
  return all;
}

// The name of an operator without the prefix "Custom_".
inline std::string bare(const std::string& name) {
  return name.rfind("Custom_", 0) == 0 ? name.substr(7) : name;
}

POLYOP_HIDDEN inline bool add_operator(const std::string& name) {
  registered()[bare(name)];
  return true;
}
POLYOP_HIDDEN inline bool add_infer(const std::string& name, const mindspore::ops::OpFuncImpl* infer) {
  registered()[bare(name)].infer = infer;
  return true;
}
template <typename Create>
POLYOP_HIDDEN bool add_kernel(const std::string& name, Create create) {
  registered()[bare(name)].create = create;
  return true;
}

// The category of a dtype: bool, integer, float, complex. A number of a higher category changes the dtype of
// a tensor.
inline int kind_of(ms::TypeId type) {
  using namespace mindspore;
  if (type == kNumberTypeBool) return 0;
  return type <= kNumberTypeUInt64 ? 1 : type <= kNumberTypeBFloat16 ? 2 : 3;
}

// The smallest dtype that has all values of both.
inline ms::TypeId promoted(ms::TypeId a, ms::TypeId b) {
  using namespace mindspore;
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (kind_of(a) == 2) {
    if (a == kNumberTypeFloat64 || b == kNumberTypeFloat64) return kNumberTypeFloat64;
    return kNumberTypeFloat32;  // also for float16 with bfloat16
  }
  if (kind_of(a) == 3 || (a >= kNumberTypeUInt8) == (b >= kNumberTypeUInt8)) return std::max(a, b);
  const int from_unsigned = std::max(a, b) - kNumberTypeUInt8 + 1;  // the signed dtype of twice the width
  const int from_signed = std::min(a, b) - kNumberTypeInt8;
  if (from_unsigned > 3) throw std::runtime_error("uint64 and a signed integer have no dtype in common");
  return static_cast<TypeId>(kNumberTypeInt8 + std::max(from_unsigned, from_signed));
}

// A graph operator: its definition and its registration.
class Operator {
 public:
  Operator(Definition definition, Registered parts)
      : definition_(std::move(definition)),
        parts_(std::move(parts)),
        primitive_(std::make_shared<mindspore::Primitive>(definition_.name)) {}

  static int call(const polyop_function* self, const polyop_value* arguments, size_t count,
                  polyop_value* result, void (*fail)(const char*)) {
    try {
      static_cast<const Operator*>(self->target)->run(arguments, count, result);
      return 0;
    } catch (const std::exception& problem) {
      fail(problem.what());
    } catch (...) {
      fail("it threw an exception that is no std::exception");
    }
    return 1;
  }

 private:
  using Items = std::vector<Item>;
  using Kernels = std::vector<mindspore::kernel::KernelTensor>;

  void run(const polyop_value* arguments, size_t count, polyop_value* result) const {
    Items inputs(arguments, arguments + count);
    for (const auto& group : definition_.groups) unify(&inputs, group);
    std::vector<ms::Tensor> outputs = infer(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_written(i)) make_dense(&inputs[i]);
    }
    launch(inputs, outputs);
    if (definition_.list || outputs.size() > 1) {
      Convert<std::vector<ms::Tensor>>::out(outputs, result);
    } else if (!outputs.empty()) {
      Convert<ms::Tensor>::out(outputs[0], result);
    }
  }

  bool is_written(size_t argument) const {
    const auto& all = definition_.written;
    return std::find(all.begin(), all.end(), argument) != all.end();
  }

  // Casts the tensors of a group to their common dtype. Numbers count by their category.
  void unify(Items* inputs, const std::vector<size_t>& group) const {
    std::vector<Item*> tensors;
    ms::TypeId common = mindspore::kTypeUnknown;
    for (const size_t i : group) {
      Item& item = inputs->at(i);
      if (!item.is_tensor()) continue;
      tensors.push_back(&item);
      common = tensors.size() == 1 ? item.type() : promoted(common, item.type());
    }
    for (const size_t i : group) {
      const Item& item = inputs->at(i);
      const bool number = item.object_type() == mindspore::kObjectTypeNumber;
      if (number && !tensors.empty() && kind_of(item.type()) > kind_of(common)) common = item.type();
    }
    for (Item* item : tensors) {
      if (item->type() == common) continue;
      if (is_written(static_cast<size_t>(item - inputs->data()))) {
        throw std::runtime_error(
            "an argument that is written has another dtype than its dtype_group comes to");
      }
      item->set_tensor(item->tensor().cast(common));
    }
  }

  static void make_dense(Item* item) {
    if (item->is_tensor()) item->set_tensor(item->tensor().contiguous());
    for (Item& part : item->items()) make_dense(&part);
  }

  // The outputs: new tensors, or arguments for outputs in place.
  std::vector<ms::Tensor> infer(const Items& inputs) const {
    mindspore::ops::InferInfoPtrList infos;
    for (const Item& item : inputs) infos.push_back(std::make_unique<mindspore::ops::InferInfo>(item));
    if (parts_.infer->CheckValidation(primitive_, infos) != mindspore::ops::OP_CHECK_SUCCESS) {
      throw std::runtime_error(definition_.name + ": CheckValidation() refused the arguments");
    }
    const auto shapes = parts_.infer->InferShape(primitive_, infos);
    const auto types = parts_.infer->InferType(primitive_, infos);
    const size_t declared = definition_.inplace.size();
    if (types.size() != shapes.size() || (!definition_.list && shapes.size() != declared)) {
      throw std::runtime_error(definition_.name + ": InferShape() gave " + std::to_string(shapes.size()) +
                               " shapes and InferType() " + std::to_string(types.size()) +
                               " dtypes, but op_def has " + std::to_string(declared) + " returns");
    }
    std::vector<ms::Tensor> outputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const int input = definition_.list ? -1 : definition_.inplace[i];
      if (input >= 0) {
        outputs.push_back(inputs.at(static_cast<size_t>(input)).tensor());
        continue;
      }
      for (const int64_t size : shapes[i]) {
        if (size < 0)
          throw std::runtime_error(definition_.name + ": InferShape() gave a size that is not known");
      }
      outputs.emplace_back(types[i], shapes[i]);
    }
    return outputs;
  }

  // Runs the kernel. Does nothing while shapes are derived.
  void launch(const Items& inputs, const std::vector<ms::Tensor>& outputs) const {
    using mindspore::kernel::KernelTensor;
    std::vector<ms::Tensor> read, write = outputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      gather(inputs[i], &read);
      if (is_written(i)) gather(inputs[i], &write);
    }
    if (deriving()) {
      run_kernel(definition_.name, read, write, 0, [](void*) {});
      return;
    }
    Kernels from, to, memory;
    for (const Item& item : inputs) from.emplace_back(item);
    for (const ms::Tensor& tensor : outputs) to.emplace_back(Item(tensor));
    const auto kernel = parts_.create();
    kernel->set_primitive(primitive_);
    if (!kernel->Init(pointers(&from), pointers(&to)) ||
        kernel->Resize(pointers(&from), pointers(&to)) != mindspore::kernel::KRET_OK) {
      throw std::runtime_error(definition_.name + ": its kernel refused the arguments");
    }
    for (const size_t bytes : kernel->GetWorkspaceSizeList()) {
      memory.emplace_back(Item(ms::Tensor(mindspore::kNumberTypeUInt8, {static_cast<int64_t>(bytes)})));
    }
    static char no_stream;
    void* stream = functions()->stream();
    if (stream == nullptr) stream = &no_stream;
    run_kernel(definition_.name, read, write, 0, [&](void*) {
      if (!kernel->Launch(pointers(&from), pointers(&memory), pointers(&to), stream)) {
        throw std::runtime_error(definition_.name + ": Launch() returned false");
      }
    });
  }

  static void gather(const Item& item, std::vector<ms::Tensor>* all) {
    if (item.is_tensor()) all->push_back(item.tensor());
    for (const Item& part : item.items()) gather(part, all);
  }
  static std::vector<mindspore::kernel::KernelTensor*> pointers(Kernels* kernels) {
    std::vector<mindspore::kernel::KernelTensor*> result;
    for (auto& kernel : *kernels) result.push_back(&kernel);
    return result;
  }

  Definition definition_;
  Registered parts_;
  mindspore::PrimitivePtr primitive_;
};

// Binds an operator as "Custom_" + the name of its function. Python relies on that name.
inline void define(pybind11::module_& m, const Definition& definition) {
  const auto entry = registered().find(definition.name);
  if (entry == registered().end() || !entry->second.is_complete()) {
    if (entry == registered().end() && m.has(definition.function)) return;  // it has no graph mode
    m.fail("op_def has the operator " + definition.name + ", and no source registers its " +
           (entry == registered().end() ? "OpFuncImpl and its kernel: write REG_GRAPH_MODE_OP("
            : entry->second.create      ? "OpFuncImpl: write MS_CUSTOM_OP_REGISTER("
                                        : "kernel: write MS_CUSTOM_OP_REGISTER(") +
           definition.name + ", Infer, Kernel)");
    return;
  }
  const auto* target = new Operator(definition, entry->second);  // never freed
  m.def_values("Custom_" + definition.function, definition.schema, definition.doc, target, Operator::call);
  registered().erase(entry);
}

// Binds the operators that sources define with OpDef. Fails for a registered operator without a definition.
// Called last.
inline void finish(pybind11::module_& m) {
  const auto left = registered();
  for (const auto& entry : left) {
    if (entry.second.definition != nullptr) {
      entry.second.define(m, *entry.second.definition);
    } else {
      m.fail("REG_GRAPH_MODE_OP(" + entry.first +
             "): no op_def has this operator; give CustomOpBuilder an op_def file with its arguments");
    }
  }
}

}  // namespace polyop::graph

#endif
