// ONNX Runtime's custom operators: one for each operator of an exported library that this interface can call.
#ifndef POLYOP_EXPORT_ONNX_H
#define POLYOP_EXPORT_ONNX_H

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "polyop/export/onnx_api.h"
#include "polyop/export/operator.h"
#include "polyop/export/owned_attribute.h"
#include "polyop/export/run.h"

namespace polyop {
namespace exported __attribute__((visibility("hidden"))) {

  // An operator as a session sees it.
  struct OnnxOperator : ort::Operator {
    const exported::Operator* op;
    const char* type;  // the name without its namespace
  };

  // An operator with the attributes of one node.
  struct OnnxNode {
    const exported::Operator& op;
    const ort::Api& api;
    std::vector<OwnedAttribute> owned;
    std::vector<polyop_attribute> attributes;
  };

  inline bool succeeded(const ort::Api& api, ort::Status* status) {
    if (status != nullptr) api.release_status(status);
    return status == nullptr;
  }

  inline void require(const ort::Api& api, ort::Status* status) {
    if (status == nullptr) return;
    const std::string words = api.words(status);
    api.release_status(status);
    throw Error("ONNX Runtime refused a request of its kernel: " + words);
  }

  // Reads an attribute of a node. An absent one has its default. Throws Error for another kind.
  inline void read_attribute(OwnedAttribute & owned, const Attribute& attribute, const ort::Api& api,
                             const ort::Info* info) {
    const char* name = attribute.name;
    int64_t integer = 0;
    float real = 0;
    size_t count = 0;
    const auto single = [&](const char* seen) {
      if (attribute.depth != 0) throw owned.wrong(seen);
    };
    if (succeeded(api, api.read_int(info, name, &integer))) {
      single("an int");
      return owned.add_int(integer);
    }
    if (succeeded(api, api.read_float(info, name, &real))) {
      single("a float");
      return owned.add_float(real);
    }
    if (succeeded(api, api.read_string(info, name, nullptr, &count))) {
      single("a text");
      std::string text(count, '\0');  // including the NUL at its end
      require(api, api.read_string(info, name, &text[0], &count));
      return owned.add_text(text.data(), count > 0 ? count - 1 : 0);
    }
    if (!succeeded(api, api.read_ints(info, name, nullptr, &count))) return owned.use_default();
    if (attribute.depth != 1) throw owned.wrong("a list or a tensor");
    if (count > 0) {  // 0 for any other kind
      std::vector<int64_t> values(count);
      require(api, api.read_ints(info, name, values.data(), &count));
      for (const int64_t value : values) owned.add_int(value);
      return;
    }
    if (!succeeded(api, api.read_floats(info, name, nullptr, &count))) throw owned.wrong("another kind");
    std::vector<float> values(count);
    if (count > 0) require(api, api.read_floats(info, name, values.data(), &count));
    for (const float value : values) owned.add_float(value);
  }

  // An input of a call; its sizes are in `sizes`. Throws Error.
  inline polyop_array input_of(const ort::Api& api, const ort::Context* context, size_t i, const Input& input,
                               std::vector<int64_t>& sizes) {
    const ort::Value* value = nullptr;
    require(api, api.input(context, i, &value));
    if (value == nullptr) {
      if (input.optional) return {nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT};
      throw Error("the input " + std::string(input.name) + " must be given");
    }
    ort::TensorInfo* info = nullptr;
    require(api, api.tensor_info(value, &info));
    const std::unique_ptr<ort::TensorInfo, void (*)(ort::TensorInfo*)> owner(info, api.release_tensor_info);
    int number = 0;
    size_t ndim = 0;
    require(api, api.element_type(info, &number));
    require(api, api.ndim(info, &ndim));
    sizes.resize(ndim);
    require(api, api.shape(info, sizes.data(), ndim));
    const int32_t dtype = dtype_with(&DTypeRow::onnx, number);
    if (dtype < 0) {
      throw Error("the input " + std::string(input.name) + " has ONNX's dtype " + std::to_string(number) +
                  ", which no kernel takes");
    }
    void* data = nullptr;
    require(api, api.data(const_cast<ort::Value*>(value), &data));
    return {data, sizes.data(), static_cast<int32_t>(ndim), dtype};
  }

  // Runs a node: outputs that the graph does not use go into memory of this call. Throws Error.
  inline void run_node(const OnnxNode& node, ort::Context* context) {
    const Operator& op = node.op;
    const ort::Api& api = node.api;
    size_t given = 0, wanted = 0;
    require(api, api.input_number(context, &given));
    require(api, api.output_number(context, &wanted));
    if (given > static_cast<size_t>(op.input_count) || wanted > static_cast<size_t>(op.output_count)) {
      throw Error("the node has " + std::to_string(given) + " inputs and " + std::to_string(wanted) +
                  " outputs; the schema is " + op.schema);
    }
    std::vector<std::vector<int64_t>> sizes(op.input_count);
    std::vector<polyop_array> inputs, outputs;
    for (int32_t i = 0; i < op.input_count; ++i) {
      if (static_cast<size_t>(i) < given) {
        inputs.push_back(input_of(api, context, i, op.inputs[i], sizes[i]));
      } else if (op.inputs[i].optional) {
        inputs.push_back({nullptr, nullptr, 0, POLYOP_DTYPE_ABSENT});
      } else {
        throw Error("the input " + std::string(op.inputs[i].name) + " must be given");
      }
    }
    std::vector<Shape> shapes = infer(op, inputs.data(), node.attributes.data());
    std::vector<std::unique_ptr<void, void (*)(void*)>> unused;
    for (int32_t i = 0; i < op.output_count; ++i) {
      std::vector<int64_t>& shape = shapes[i].sizes;
      ort::Value* value = nullptr;
      void* data = nullptr;
      if (static_cast<size_t>(i) < wanted) {
        require(api, api.output(context, i, shape.data(), shape.size(), &value));
      }
      if (value != nullptr) {
        require(api, api.data(value, &data));
      } else {
        size_t bytes = static_cast<size_t>(kDTypeRows[shapes[i].dtype].bytes);
        for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
        unused.emplace_back(std::aligned_alloc(64, (bytes / 64 + 1) * 64), std::free);
        if ((data = unused.back().get()) == nullptr) throw Error("there is no memory for an output");
      }
      outputs.push_back({data, shape.data(), static_cast<int32_t>(shape.size()), shapes[i].dtype});
    }
    run(op, inputs.data(), node.attributes.data(), outputs.data(), nullptr);
  }

  // Returns what `work` returns, or a Status with the text of its error.
  template <typename Work>
  ort::Status* guarded(const Operator& op, const ort::Api& api, Work work) noexcept {
    try {
      work();
      return nullptr;
    } catch (const std::exception& problem) {
      return api.create_status(ort::kFailed, failure(op, problem.what()).c_str());
    } catch (...) {
      return api.create_status(ort::kFailed,
                               failure(op, "the kernel threw something that is no std::exception").c_str());
    }
  }

  inline ort::Status* create_node(const ort::Operator* self, const ort::Api* api, const ort::Info* info,
                                  void** kernel) {
    const Operator& op = *static_cast<const OnnxOperator*>(self)->op;
    return guarded(op, *api, [&] {
      auto node = std::unique_ptr<OnnxNode>(new OnnxNode{op, *api, {}, {}});
      for (int32_t i = 0; i < op.attribute_count; ++i) {
        node->owned.emplace_back(op.attributes[i]);
        read_attribute(node->owned.back(), op.attributes[i], *api, info);
      }
      node->attributes = values_of(node->owned);
      *kernel = node.release();
    });
  }

  inline ort::Status* compute_node(void* kernel, ort::Context* context) {
    const auto& node = *static_cast<OnnxNode*>(kernel);
    return guarded(node.op, node.api, [&] { run_node(node, context); });
  }

  // Never freed: a session may use it for as long as the process lives. The functions of ONNX Runtime for
  // kinds cannot say that two inputs differ in dtype except of variadic ones; infer() checks the dtypes.
  inline const OnnxOperator* onnx_operator(const Operator& op) {
    auto* entry = new OnnxOperator{};
    entry->op = &op;
    entry->type = std::strstr(op.name, "::") + 2;
    entry->version = ort::kVersion;
    entry->name = [](const ort::Operator* self) { return static_cast<const OnnxOperator*>(self)->type; };
    entry->provider = [](const ort::Operator*) { return static_cast<const char*>(nullptr); };  // the CPU
    entry->input_type =
        entry->output_type = [](const ort::Operator*, size_t) -> int { return ort::kUnknown; };
    entry->input_count = entry->output_count = [](const ort::Operator*) -> size_t { return 1; };
    entry->input_kind =
        entry->output_kind = [](const ort::Operator*, size_t) -> int { return ort::kVariadic; };
    entry->input_memory = [](const ort::Operator*, size_t) { return 0; };  // in the provider's memory
    entry->min_inputs = entry->min_outputs = [](const ort::Operator*) { return 0; };
    entry->inputs_homogeneous = entry->outputs_homogeneous = [](const ort::Operator*) { return 0; };
    entry->destroy = [](void* kernel) { delete static_cast<OnnxNode*>(kernel); };
    entry->create = create_node;
    entry->compute = compute_node;
    return entry;
  }

  // Adds operators to a session's options, each in the domain of its namespace. The domains are created once.
  inline ort::Status* register_in_onnx(ort::Options * options, const ort::Base* base,
                                       const std::vector<const Operator*>& operators) noexcept {
    const ort::Api* api = base->api(ort::kVersion);
    if (api == nullptr) {
      return base->api(1)->create_status(ort::kFailed, "this library needs ONNX Runtime 1.16 or later");
    }
    try {
      struct Domains {
        std::vector<std::pair<std::string, ort::Domain*>> rows;
        ort::Status* problem = nullptr;
      };
      const auto create = [&] {
        Domains domains;
        for (const Operator* op : operators) {
          const std::string name(op->name, std::strstr(op->name, "::"));
          ort::Domain* domain = nullptr;
          for (const auto& row : domains.rows) domain = row.first == name ? row.second : domain;
          if (domain == nullptr) {
            if ((domains.problem = api->create_domain(name.c_str(), &domain)) != nullptr) break;
            domains.rows.emplace_back(name, domain);
          }
          if ((domains.problem = api->add_operator(domain, onnx_operator(*op))) != nullptr) break;
        }
        return domains;
      };
      static const auto* domains = new Domains(create());
      if (domains->problem != nullptr) {
        const std::string words = api->words(domains->problem);
        return api->create_status(ort::kFailed, ("this library's operators were refused: " + words).c_str());
      }
      for (const auto& row : domains->rows) {
        if (ort::Status* problem = api->add_domain(options, row.second)) return problem;
      }
      return nullptr;
    } catch (const std::exception& problem) {
      return api->create_status(ort::kFailed, problem.what());
    }
  }

}  // namespace exported
}  // namespace polyop

#endif
