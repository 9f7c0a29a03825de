#include "gradient.h"

#include <stdexcept>

#include "frame.h"

namespace polyop::module {

namespace {

std::string text_of(const int64_t* shape, size_t count) {
  std::string text = "(";
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (count == 1 ? ",)" : ")");
}

std::string backward_of(const Node& node) { return "Backward of " + node.name(); }

Ref cast(Frame& frame, const Ref& tensor, int32_t row) {
  Ref result = frame.empty(row, tensor->ndim, tensor->shape);
  const polyop_value arguments[] = {value_of(tensor.get()),
                                    value_of(int64_t{dtypes()[static_cast<size_t>(row)].type_id}),
                                    value_of(result.get())};
  launch(frame, "aclnnCast", arguments, 3, 1);
  return result;
}

// Sums over the dimensions along which an input of shape `target` was broadcast.
Ref sum_to(Frame& frame, const Ref& tensor, const Sizes& target, const std::string& subject) {
  const auto rank = static_cast<size_t>(tensor->ndim);
  bool fits = rank >= target.size();
  const size_t leading = fits ? rank - target.size() : 0;
  std::vector<polyop_value> dims;
  for (size_t i = 0; fits && i < rank; ++i) {
    const bool summed = i < leading || (target[i - leading] == 1 && tensor->shape[i] != 1);
    if (summed) dims.push_back(value_of(static_cast<int64_t>(i)));
    fits = summed || target[i - leading] == tensor->shape[i];
  }
  if (!fits) {
    throw std::runtime_error(subject + ": the gradient has shape " + text_of(tensor->shape, rank) +
                             ", and should be broadcast to the input's shape " +
                             text_of(target.data(), target.size()));
  }
  const int32_t row = tensor->row;
  std::vector<int64_t> sum_shape(tensor->shape, tensor->shape + rank);
  for (const polyop_value& dim : dims) sum_shape[static_cast<size_t>(dim.as.integer)] = 1;
  Ref sums = frame.empty(row, static_cast<int32_t>(rank), sum_shape.data());
  polyop_value list{};
  list.kind = POLYOP_VALUE_LIST;
  list.count = dims.size();
  list.as.items = dims.data();
  polyop_value keep_dims = value_of(int64_t{1});
  keep_dims.kind = POLYOP_VALUE_BOOL;
  const polyop_value arguments[] = {value_of(tensor.get()), list, keep_dims,
                                    value_of(int64_t{dtypes()[static_cast<size_t>(row)].type_id}),
                                    value_of(sums.get())};
  launch(frame, "aclnnReduceSum", arguments, 5, 1);
  Ref shaped = make_view(sums.get(), static_cast<int32_t>(target.size()), target.data(), nullptr, 0);
  return frame.adopt_view(sums, std::move(shaped));
}

Ref fit(Frame& frame, Ref gradient, const Node& node, size_t input) {
  const Layout& layout = node.inputs[input].layout;
  if (!layout.shape.matches(*gradient.get())) {
    gradient = sum_to(frame, gradient, layout.shape, backward_of(node) + ", input " + std::to_string(input));
  }
  return gradient->row == layout.row ? gradient : cast(frame, gradient, layout.row);
}

Ref zeros(Frame& frame, const Layout& layout) {
  Ref result = frame.empty(layout.row, static_cast<int32_t>(layout.shape.size()), layout.shape.data());
  const polyop_value arguments[] = {value_of(result.get())};
  launch(frame, "aclnnInplaceZero", arguments, 1, 1);
  return result;
}

}  // namespace

Ref shaped_like(Frame& frame, Ref gradient, const Layout& target) {
  if (!target.shape.matches(*gradient.get())) {
    gradient = frame.contiguous(gradient.get());
    Ref view = make_view(gradient.get(), static_cast<int32_t>(target.shape.size()), target.shape.data(),
                         nullptr, gradient->offset);
    gradient = frame.adopt_view(gradient, std::move(view));
  }
  return gradient->row == target.row ? gradient : cast(frame, gradient, target.row);
}

Ref add(Frame& frame, const Ref& a, const Ref& b) {
  Ref result = frame.empty(a->row, a->ndim, a->shape);
  const polyop_value arguments[] = {value_of(a.get()), value_of(b.get()), value_of(int64_t{1}),
                                    value_of(result.get())};
  launch(frame, "aclnnAdd", arguments, 4, 1);
  return result;
}

std::vector<Ref> run_backward(Frame& frame, Node& node, const std::vector<Ref>& saved,
                              const std::vector<Ref>& gradients) {
  std::vector<Ref> results;
  std::vector<Ref> output_gradients = gradients;
  bool any_gradient = false;
  for (size_t i = 0; i < output_gradients.size(); ++i) {
    if (i < 64 && (node.non_differentiable >> i & 1) != 0) output_gradients[i] = Ref();
    any_gradient = any_gradient || output_gradients[i];
  }
  Small<uint8_t, 16> requires_gradient;
  bool any_required = false;
  for (const Edge& edge : node.inputs) {
    requires_gradient.push(edge.requires_gradient ? 1 : 0);
    any_required = any_required || edge.requires_gradient;
  }
  if (!any_gradient || !any_required) return results;
  if (node.materialize) {
    for (size_t i = 0; i < output_gradients.size(); ++i) {
      if (!output_gradients[i]) output_gradients[i] = zeros(frame, node.outputs[i]);
    }
  }
  void* state = node.hooks.state;
  for (size_t i = 0; i < node.slots.size(); ++i) {
    const int slot = node.slots[i];
    if (slot >= 0) node.hooks.set_saved(state, i, saved[static_cast<size_t>(slot)].get());
  }
  Small<polyop_tensor*, 8> pointers, input_gradients;
  for (const Ref& gradient : output_gradients) pointers.push(gradient.get());
  for (size_t i = 0; i < node.inputs.size(); ++i) input_gradients.push(nullptr);
  size_t returned = 0;
  const int code = node.hooks.backward(state, pointers.data(), pointers.size(), requires_gradient.data(),
                                       input_gradients.data(), input_gradients.size(), &returned);
  results.reserve(input_gradients.size());
  for (polyop_tensor* tensor : input_gradients) results.emplace_back(as_tensor(tensor));
  for (size_t i = 0; i < node.slots.size(); ++i) node.hooks.set_saved(state, i, nullptr);
  if (code != 0) throw std::runtime_error(backward_of(node) + ": " + failure());
  if (returned != node.inputs.size()) {
    throw std::runtime_error(backward_of(node) + " returned an incorrect number of gradients (expected " +
                             std::to_string(node.inputs.size()) + ", got " + std::to_string(returned) + ")");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    if (!node.inputs[i].is_tensor) {
      throw std::runtime_error(backward_of(node) + " returned a gradient at position " + std::to_string(i) +
                               ", but the corresponding forward input was not a Tensor");
    }
    if (!node.inputs[i].requires_gradient) {
      results[i] = Ref();
      continue;
    }
    results[i] = fit(frame, std::move(results[i]), node, i);
  }
  return results;
}

}  // namespace polyop::module
