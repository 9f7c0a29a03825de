// Operators of an exported library for PyTorch: a schema, a CPU kernel and a Meta kernel of each.
//
// Gradients and symbolic shapes need Python. PyTorch asks the Meta kernel with
// numbers, so a program that is compiled for symbolic shapes is compiled again for each shape.
#ifndef POLYOP_EXPORT_TORCH_H
#define POLYOP_EXPORT_TORCH_H

#include <deque>
#include <memory>
#include <mutex>

#include "polyop/export/overlap.h"
#include "polyop/export/owned_attribute.h"
#include "polyop/export/run.h"
#include "polyop/export/torch_api.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // An operator that PyTorch gets. The generated source defines the table.
  struct TorchOperator {
    int32_t number;      // in kOperators
    const char* schema;  // the results are the outputs alone, without arguments that are written
    const char*
        arguments;  // of the schema, in order: 't' a tensor, 'a' an attribute; in capitals if None is a value
    BoxedKernel cpu, meta;
  };
  extern const TorchOperator kTorchOperators[];

  // Throws Error unless a function of PyTorch returned 0.
  inline void check_torch(int code, const char* what) {
    if (code != 0) throw Error(std::string("PyTorch could not ") + what);
  }

  struct DeleteTensor {
    void operator()(void* handle) const { torch_api().delete_tensor(handle); }
  };
  using OwnedTensor = std::unique_ptr<void, DeleteTensor>;

  inline void* pointer_of(StableIValue value) { return reinterpret_cast<void*>(value); }

  // Takes the value out of an optional. Returns false for None.
  inline bool unwrap(StableIValue * value) {
    auto* inner = static_cast<StableIValue*>(pointer_of(*value));
    if (inner == nullptr) return false;
    *value = *inner;
    if (torch_api().delete_value != nullptr) {
      torch_api().delete_value(inner);
    } else {
      delete inner;
    }
    return true;
  }

  inline void add_torch_value(OwnedAttribute & owned, int32_t kind, StableIValue value) {
    const TorchApi& torch = torch_api();
    if (kind == POLYOP_FLOAT) {
      double number = 0;
      std::memcpy(&number, &value, sizeof number);
      owned.add_float(number);
    } else if (kind == POLYOP_STRING) {
      const char* text = nullptr;
      size_t size = 0;
      check_torch(torch.text(pointer_of(value), &text), "read a text");
      check_torch(torch.text_size(pointer_of(value), &size), "read a text");
      owned.add_text(text, size);
      torch.delete_text(pointer_of(value));
    } else {
      owned.add_int(kind == POLYOP_BOOL ? (value & 0xff) != 0 : static_cast<int64_t>(value));
    }
  }

  inline void add_torch_attribute(OwnedAttribute & owned, const Attribute& attribute, StableIValue value) {
    const TorchApi& torch = torch_api();
    if (attribute.depth == 0) return add_torch_value(owned, attribute.kind, value);
    size_t count = 0;
    check_torch(torch.list_size(pointer_of(value), &count), "read a list");
    for (size_t i = 0; i < count; ++i) {
      StableIValue item = 0;
      check_torch(torch.list_item(pointer_of(value), i, &item), "read a list");
      add_torch_value(owned, attribute.kind, item);
    }
    torch.delete_list(pointer_of(value));
  }

  // Copies between dense memory and memory with strides, which count elements.
  inline void copy_strided(char* dense, char* strided, const polyop_array& array, const int64_t* strides,
                           bool back) {
    const size_t bytes = static_cast<size_t>(kDTypeRows[array.dtype].bytes);
    std::vector<int64_t> index(static_cast<size_t>(array.ndim), 0);
    int64_t count = 1, at = 0;
    for (int32_t d = 0; d < array.ndim; ++d) count *= array.sizes[d];
    for (int64_t i = 0; i < count; ++i, dense += bytes) {
      char* element = strided + at * static_cast<int64_t>(bytes);
      std::memcpy(back ? element : dense, back ? dense : element, bytes);
      for (int32_t d = array.ndim; d-- > 0;) {
        at += strides[d];
        if (++index[static_cast<size_t>(d)] < array.sizes[d]) break;
        at -= strides[d] * array.sizes[d];
        index[static_cast<size_t>(d)] = 0;
      }
    }
  }

  // A tensor argument, whose handle belongs to the caller: what the kernel gets is dense.
  class TorchInput {
   public:
    TorchInput(void* handle, const Input& input, bool meta) : input_(input) {
      const TorchApi& torch = torch_api();
      int64_t ndim = 0;
      int32_t device = 0, dtype = 0;
      check_torch(torch.device_type(handle, &device), "read the device of a tensor");
      if (device != (meta ? torch.meta() : torch.cpu())) {
        throw wrong(meta ? "must be on the Meta device" : "must be on the CPU");
      }
      check_torch(torch.dtype(handle, &dtype), "read the dtype of a tensor");
      for (int32_t i = 0; i < kDTypes; ++i) {
        if (torch.dtypes[i] == dtype) array_.dtype = i;
      }
      if (array_.dtype < 0) throw wrong("has a dtype that polyop does not know");
      if (torch.dim(handle, &ndim) != 0 || torch.sizes(handle, &array_.sizes) != 0 ||
          torch.strides(handle, &strides_) != 0) {
        throw wrong("has sizes that are no numbers");
      }
      array_.ndim = static_cast<int32_t>(ndim);
      if (meta) return;
      check_torch(torch.data(handle, &array_.data), "read the memory of a tensor");
      if (!is_dense()) make_dense();
    }

    const polyop_array& array() const { return array_; }
    bool is_written() const { return input_.written; }
    bool is_copied() const { return strided_ != nullptr; }
    Layout layout() const {
      const char* data = is_copied() ? strided_ : static_cast<const char*>(array_.data);
      return {input_.name, data, array_.sizes, strides_, array_.ndim, kDTypeRows[array_.dtype].bytes};
    }
    // Brings what the kernel wrote to the tensor.
    void write_back() {
      if (input_.written && !dense_.empty()) copy_strided(dense_.data(), strided_, array_, strides_, true);
    }

   private:
    Error wrong(const std::string& what) const {
      return Error("the tensor " + std::string(input_.name) + " " + what);
    }

    bool is_dense() const {
      int64_t expected = 1;
      bool dense = true;
      for (int32_t d = array_.ndim; d-- > 0;) {
        if (array_.sizes[d] == 0) return true;
        if (array_.sizes[d] != 1 && strides_[d] != expected) dense = false;
        expected *= array_.sizes[d];
      }
      return dense;
    }

    void make_dense() {
      if (input_.written) check_overlap(layout());
      size_t bytes = static_cast<size_t>(kDTypeRows[array_.dtype].bytes);
      for (int32_t d = 0; d < array_.ndim; ++d) bytes *= static_cast<size_t>(array_.sizes[d]);
      dense_.resize(bytes);
      strided_ = static_cast<char*>(array_.data);
      array_.data = dense_.data();
      copy_strided(dense_.data(), strided_, array_, strides_, false);
    }

    const Input& input_;
    polyop_array array_ = {nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT};
    int64_t* strides_ = nullptr;
    std::vector<char> dense_;
    char* strided_ = nullptr;
  };

  // Throws Error if one of several tensors that are written is a copy, and shares memory with another.
  inline void check_written(const std::deque<TorchInput>& tensors) {
    std::vector<Layout> written;
    bool copied = false;
    for (const TorchInput& tensor : tensors) {
      if (!tensor.is_written()) continue;
      written.push_back(tensor.layout());
      copied = copied || tensor.is_copied();
    }
    if (copied) check_apart(written);
  }

  inline OwnedTensor new_torch_tensor(const Shape& shape, bool meta, const char* name) {
    const TorchApi& torch = torch_api();
    std::vector<int64_t> strides(shape.sizes.size());
    int64_t step = 1;
    for (size_t d = strides.size(); d-- > 0;) {
      strides[d] = step;
      step *= shape.sizes[d] > 1 ? shape.sizes[d] : 1;
    }
    const int32_t dtype = torch.dtypes[shape.dtype];
    if (dtype < 0) throw Error("this PyTorch has no dtype " + std::string(kDTypeRows[shape.dtype].name));
    void* handle = nullptr;
    const int code =
        torch.empty_strided(static_cast<int64_t>(strides.size()), shape.sizes.data(), strides.data(), dtype,
                            meta ? torch.meta() : torch.cpu(), -1, &handle);
    if (code != 0) throw Error("PyTorch could not allocate the output " + std::string(name));
    return OwnedTensor(handle);
  }

  inline void run_from_torch(const TorchOperator& entry, StableIValue* stack, bool meta) {
    const Operator& op = *kOperators[entry.number];
    // PyTorch hands over every value: all are owned before anything may throw.
    const size_t count = std::strlen(entry.arguments);
    std::vector<OwnedTensor> handles(count);
    std::vector<OwnedAttribute> owned;
    std::vector<OwnedAttribute*> absent;
    owned.reserve(static_cast<size_t>(op.attribute_count));
    for (size_t i = 0; i < count; ++i) {
      StableIValue value = stack[i];
      const char code = entry.arguments[i];
      const bool present = code == 't' || code == 'a' || unwrap(&value);
      if (code == 't' || code == 'T') {
        if (present) handles[i].reset(pointer_of(value));
        continue;
      }
      const Attribute& attribute = op.attributes[owned.size()];
      owned.emplace_back(attribute);
      if (present) {
        add_torch_attribute(owned.back(), attribute, value);
      } else {
        absent.push_back(&owned.back());
      }
    }
    for (OwnedAttribute* attribute : absent) attribute->set_none();
    std::deque<TorchInput> tensors;  // their addresses stay
    std::vector<polyop_array> inputs;
    for (size_t i = 0; i < count; ++i) {
      if (entry.arguments[i] != 't' && entry.arguments[i] != 'T') continue;
      const Input& input = op.inputs[inputs.size()];
      inputs.push_back({nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT});
      if (handles[i] != nullptr) inputs.back() = tensors.emplace_back(handles[i].get(), input, meta).array();
    }
    check_written(tensors);
    const std::vector<polyop_attribute> attributes = values_of(owned);
    const std::vector<Shape> shapes = infer(op, inputs.data(), attributes.data());
    std::vector<OwnedTensor> outputs;
    std::vector<polyop_array> arrays;
    for (const Shape& shape : shapes) {
      outputs.push_back(new_torch_tensor(shape, meta, op.outputs[outputs.size()]));
      arrays.push_back({nullptr, const_cast<int64_t*>(shape.sizes.data()),
                        static_cast<int32_t>(shape.sizes.size()), shape.dtype});
      if (!meta)
        check_torch(torch_api().data(outputs.back().get(), &arrays.back().data), "allocate an output");
    }
    if (!meta) {
      run(op, inputs.data(), attributes.data(), arrays.data(), nullptr);
      for (TorchInput& tensor : tensors) tensor.write_back();
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      stack[i] = reinterpret_cast<StableIValue>(outputs[i].release());
    }
  }

  // The interface has no way to report an error: PyTorch expects an exception of the standard library.
  inline void call_from_torch(const TorchOperator& entry, StableIValue* stack, bool meta) {
    try {
      run_from_torch(entry, stack, meta);
    } catch (const std::exception& problem) {
      throw std::runtime_error(failure(*kOperators[entry.number], problem.what()));
    }
  }

  template <int32_t kEntry>
  void torch_cpu(StableIValue * stack, uint64_t, uint64_t) {
    call_from_torch(kTorchOperators[kEntry], stack, false);
  }
  template <int32_t kEntry>
  void torch_meta(StableIValue * stack, uint64_t, uint64_t) {
    call_from_torch(kTorchOperators[kEntry], stack, true);
  }

  inline bool register_torch_operator(const TorchOperator& entry) {
    const TorchApi& torch = torch_api();
    const Operator& op = *kOperators[entry.number];
    const std::string schema = entry.schema, qualified = schema.substr(0, schema.find('('));
    const size_t colons = qualified.find("::");
    const std::string space = qualified.substr(0, colons), name = qualified.substr(colons + 2);
    void *definitions = nullptr, *implementations = nullptr;
    if (torch.library_fragment(space.c_str(), op.name, 0, &definitions) != 0 ||
        torch.define(definitions, schema.c_str()) != 0) {
      return false;
    }
    const auto implement = [&](const char* key, BoxedKernel kernel) {
      return torch.library_impl(space.c_str(), key, op.name, 0, &implementations) == 0 &&
             torch.implement(implementations, name.c_str(), kernel, TorchApi::kVersion) == 0;
    };
    return implement("CPU", entry.cpu) && implement("Meta", entry.meta);
  }

  // Registers the operators once. Returns 0; 1 if the process has no libtorch of PyTorch 2.10 or newer; 2 if
  // PyTorch refused an operator, as it does when another library has registered the name.
  inline int register_torch(int32_t count) noexcept {
    static std::mutex mutex;
    static int answer = 1;
    const std::lock_guard<std::mutex> lock(mutex);
    if (answer != 1) return answer;
    try {
      if (!torch_api().load()) return 1;
      Dl_info self;  // PyTorch keeps the kernels: this library must stay loaded
      if (dladdr(reinterpret_cast<const void*>(&torch_api), &self) != 0) {
        dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
      }
      answer = 0;
      for (int32_t i = 0; i < count; ++i) {
        if (!register_torch_operator(kTorchOperators[i])) answer = 2;
      }
    } catch (...) {
      answer = 2;
    }
    return answer;
  }

}  // namespace exported
}  // namespace polyop

#endif
