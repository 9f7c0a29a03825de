#include "tape.h"

#include <stdexcept>

#include "frame.h"
#include "gradient.h"

namespace polyop::module {

namespace {

Edge edge_to(const Tensor* tensor) {
  Edge edge;
  if (tensor == nullptr) return edge;
  edge.is_tensor = true;
  edge.requires_gradient = tensor->needs_gradient != 0;
  edge.source = tensor->source;
  edge.layout = Layout::of(*tensor);
  return edge;
}

// "Name" from a compiler's "... [with Class = space::Name; ...]", or from "space::Name".
std::string short_name(const std::string& text) {
  const std::string mark = "Class = ";
  size_t from = text.find(mark);
  from = from == std::string::npos ? 0 : from + mark.size();
  const std::string full = text.substr(from, text.find_first_of(";]", from) - from);
  const size_t last = full.rfind(':');
  return last == std::string::npos ? full : full.substr(last + 1);
}

}  // namespace

Node::Node(const polyop_node& node) : hooks(node), materialize(node.materialize != 0) {
  inputs.reserve(node.input_count);
  outputs.reserve(node.output_count);
  for (size_t i = 0; i < node.input_count; ++i) inputs.push_back(edge_to(as_tensor(node.inputs[i])));
  for (size_t i = 0; i < node.output_count; ++i) {
    outputs.push_back(node.outputs[i] == nullptr ? Layout{} : Layout::of(*as_tensor(node.outputs[i])));
    if (i < 64) non_differentiable |= uint64_t{node.non_differentiable[i] != 0} << i;
  }
}

Node::Node(Node&& other) noexcept
    : hooks(other.hooks),
      inputs(std::move(other.inputs)),
      outputs(std::move(other.outputs)),
      non_differentiable(other.non_differentiable),
      materialize(other.materialize),
      slots(std::move(other.slots)) {
  other.hooks.state = nullptr;
}

Node::~Node() {
  if (hooks.state != nullptr) hooks.destroy(hooks.state);
}

Tape::Tape(Frame& frame, const std::vector<Ref>& inputs, const std::vector<Ref>& outputs)
    : nodes(std::move(frame.nodes)) {
  frame.nodes.clear();
  arguments.reserve(inputs.size());
  requires_gradient.reserve(inputs.size());
  results.reserve(outputs.size());
  for (const Ref& input : inputs) {
    arguments.push_back(input ? Layout::of(*input.get()) : Layout{});
    requires_gradient.push_back(input && input->needs_gradient != 0);
  }
  for (const Ref& output : outputs) {
    if (output) frame.propagate_lost(*output.get());
    results.push_back(edge_to(output.get()));
  }
  for (Node& node : nodes) sort_saved(frame, node, outputs);
}

std::string Node::name() const { return short_name(hooks.name); }

const Layout& Tape::target(const Source& source) const {
  const auto index = static_cast<size_t>(source.index);
  return source.node >= 0 ? nodes[static_cast<size_t>(source.node)].outputs[index] : arguments[index];
}

void Tape::sort_saved(Frame& frame, Node& node, const std::vector<Ref>& outputs) {
  const size_t count = node.hooks.saved_count(node.hooks.state);
  node.slots.reserve(count);
  saved.reserve(saved.size() + count);
  for (size_t i = 0; i < count; ++i) {
    Ref tensor(as_tensor(node.hooks.saved(node.hooks.state, i)));
    node.hooks.set_saved(node.hooks.state, i, nullptr);
    if (tensor) frame.renew(*tensor.get());
    if (!tensor) {
      node.slots.push_back(-1);
      continue;
    }
    Saved entry{Saved::kOwn, -1, tensor, Layout::of(*tensor.get())};
    if (tensor->argument >= 0) {
      entry = {Saved::kInput, tensor->argument, Ref(), Layout::of(*tensor.get())};
    }
    for (size_t k = 0; k < outputs.size() && entry.kind == Saved::kOwn; ++k) {
      if (outputs[k].get() == tensor.get()) {
        entry = {Saved::kOutput, static_cast<int>(k), Ref(), Layout::of(*tensor.get())};
      }
    }
    size_t index = 0;
    while (index < saved.size() && !(saved[index].kind == entry.kind && saved[index].index == entry.index &&
                                     saved[index].tensor.get() == entry.tensor.get())) {
      ++index;
    }
    if (index == saved.size()) saved.push_back(std::move(entry));
    node.slots.push_back(static_cast<int>(index));
  }
}

std::vector<Ref> Tape::backward(Frame& frame, const std::vector<Ref>& saved_tensors,
                                const std::vector<Ref>& gradients) {
  std::vector<Ref> argument_gradients(arguments.size());
  std::vector<std::vector<Ref>> output_gradients(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) output_gradients[i].resize(nodes[i].outputs.size());
  const auto accumulate = [&](const Edge& edge, Ref gradient, size_t index, const Node* node) {
    if (!edge.requires_gradient || !gradient) return;
    if (edge.source.lost || !edge.source.exists()) {
      const std::string subject = (node == nullptr ? "output " : "input ") + std::to_string(index);
      throw std::runtime_error("the gradient of " + subject + (node == nullptr ? "" : " of " + node->name()) +
                               " is not known: it was computed outside of the Apply of a Function, or "
                               "written in place without MarkDirty()");
    }
    gradient = shaped_like(frame, std::move(gradient), target(edge.source));
    Ref& sum =
        edge.source.node >= 0
            ? output_gradients[static_cast<size_t>(edge.source.node)][static_cast<size_t>(edge.source.index)]
            : argument_gradients[static_cast<size_t>(edge.source.index)];
    sum = sum ? add(frame, sum, gradient) : gradient;
  };
  for (size_t i = 0; i < results.size() && i < gradients.size(); ++i) {
    accumulate(results[i], gradients[i], i, nullptr);
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    std::vector<Ref> input_gradients = run_backward(frame, nodes[i], saved_tensors, output_gradients[i]);
    for (size_t k = 0; k < input_gradients.size(); ++k) {
      accumulate(nodes[i].inputs[k], std::move(input_gradients[k]), k, &nodes[i]);
    }
    output_gradients[i].clear();
  }
  return argument_gradients;
}

}  // namespace polyop::module
