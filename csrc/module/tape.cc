#include "tape.h"

#include <stdexcept>

#include "frame.h"
#include "gradient.h"

namespace polyop::module {

namespace {

Edge edge_to(const Tensor* tensor) {
  Edge edge;
  if (tensor == nullptr) return edge;
  edge.tensor = true;
  edge.wanted = tensor->needs_gradient != 0;
  edge.source = tensor->source;
  edge.layout = Layout::of(*tensor);
  return edge;
}

}  // namespace

namespace {

// The class's name alone, from "... [with Class = space::Name; ...]".
std::string short_name(const std::string& text) {
  const std::string mark = "Class = ";
  size_t from = text.find(mark);
  from = from == std::string::npos ? 0 : from + mark.size();
  const std::string full = text.substr(from, text.find_first_of(";]", from) - from);
  const size_t last = full.rfind(':');
  return last == std::string::npos ? full : full.substr(last + 1);
}

}  // namespace

Node::Node(const polyop_node& given) : hooks(given), materialize(given.materialize != 0) {
  inputs.reserve(given.input_count);
  outputs.reserve(given.output_count);
  for (size_t i = 0; i < given.input_count; ++i) inputs.push_back(edge_to(as_tensor(given.inputs[i])));
  for (size_t i = 0; i < given.output_count; ++i) {
    outputs.push_back(given.outputs[i] == nullptr ? Layout{} : Layout::of(*as_tensor(given.outputs[i])));
    if (i < 64) non_differentiable |= uint64_t{given.non_differentiable[i] != 0} << i;
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
  wanted.reserve(inputs.size());
  results.reserve(outputs.size());
  for (const Ref& input : inputs) {
    arguments.push_back(input ? Layout::of(*input.get()) : Layout{});
    wanted.push_back(input && input->needs_gradient != 0);
  }
  for (const Ref& output : outputs) {
    if (output) frame.settle(*output.get());
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
    size_t place = 0;
    while (place < saved.size() && !(saved[place].kind == entry.kind && saved[place].index == entry.index &&
                                     saved[place].tensor.get() == entry.tensor.get())) {
      ++place;
    }
    if (place == saved.size()) saved.push_back(std::move(entry));
    node.slots.push_back(static_cast<int>(place));
  }
}

std::vector<Ref> Tape::backward(Frame& frame, const std::vector<Ref>& given,
                                const std::vector<Ref>& gradients) {
  std::vector<Ref> found(arguments.size());
  std::vector<std::vector<Ref>> waiting(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) waiting[i].resize(nodes[i].outputs.size());
  const auto send = [&](const Edge& edge, Ref gradient, size_t number, const Node* node) {
    if (!edge.wanted || !gradient) return;
    if (edge.source.lost || !edge.source.exists()) {
      const std::string what = (node == nullptr ? "output " : "input ") + std::to_string(number);
      throw std::runtime_error("the gradient of " + what + (node == nullptr ? "" : " of " + node->name()) +
                               " is not known: it was computed outside of the Apply of a Function, or "
                               "written in place without MarkDirty()");
    }
    gradient = shaped_like(frame, std::move(gradient), target(edge.source));
    Ref& onto = edge.source.node >= 0
                    ? waiting[static_cast<size_t>(edge.source.node)][static_cast<size_t>(edge.source.index)]
                    : found[static_cast<size_t>(edge.source.index)];
    onto = onto ? add(frame, onto, gradient) : gradient;
  };
  for (size_t i = 0; i < results.size() && i < gradients.size(); ++i) {
    send(results[i], gradients[i], i, nullptr);
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    std::vector<Ref> results_of = run_backward(frame, nodes[i], given, waiting[i]);
    for (size_t k = 0; k < results_of.size(); ++k) {
      send(nodes[i].inputs[k], std::move(results_of[k]), k, &nodes[i]);
    }
    waiting[i].clear();
  }
  return found;
}

}  // namespace polyop::module
