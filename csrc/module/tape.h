// The recorded gradient of a call: its calls of Forward, and the tensors that they saved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor.h"

namespace polyop::module {

struct Frame;

// The sizes of a tensor. Up to kInline are stored in place, because a tape has many of these.
class Sizes {
 public:
  Sizes() = default;
  Sizes(const int64_t* sizes, int32_t count) : count_(count) {
    if (count > kInline) heap_.assign(sizes, sizes + count);
    for (int32_t i = 0; i < count && i < kInline; ++i) inline_[i] = sizes[i];
  }
  size_t size() const { return static_cast<size_t>(count_); }
  const int64_t* data() const { return count_ > kInline ? heap_.data() : inline_; }
  int64_t operator[](size_t i) const { return data()[i]; }
  bool matches(const Tensor& tensor) const {
    if (tensor.ndim != count_) return false;
    for (int32_t i = 0; i < count_; ++i) {
      if (tensor.shape[i] != data()[i]) return false;
    }
    return true;
  }

 private:
  static constexpr int32_t kInline = 5;
  int32_t count_ = 0;
  int64_t inline_[kInline];
  std::vector<int64_t> heap_;
};

// Shape and dtype of a tensor; `row` -1 stands for an absent one.
struct Layout {
  Sizes shape;
  int32_t row = -1;
  static Layout of(const Tensor& tensor) { return {Sizes(tensor.shape, tensor.ndim), tensor.row}; }
};

// An input of a node, or an output of the call: where its gradient goes.
struct Edge {
  bool is_tensor = false;  // an argument of Forward need not be a tensor
  bool requires_gradient = false;
  Source source;
  Layout layout;
};

// A recorded call of Forward. It owns the module's state for that call.
struct Node {
  polyop_node hooks{};
  std::vector<Edge> inputs;
  std::vector<Layout> outputs;
  uint64_t non_differentiable = 0;  // a bit for each of the first 64 outputs
  bool materialize = true;
  std::vector<int> slots;  // for each saved tensor: its index in Tape::saved, or -1

  explicit Node(const polyop_node& saved_tensors);
  Node(Node&& other) noexcept;
  Node& operator=(Node&&) = delete;
  ~Node();

  std::string name() const;  // of the class
};

// A tensor that is saved for backward.
struct Saved {
  enum Kind { kInput, kOutput, kOwn } kind;
  int index;   // which argument, or which output
  Ref tensor;  // kOwn: the tensor, until the framework has it
  Layout layout;
};

// Everything that a call saves for its gradient.
struct Tape {
  std::vector<Node> nodes;
  std::vector<Saved> saved;
  std::vector<Edge> results;      // the outputs of the call
  std::vector<Layout> arguments;  // the tensors of the call; no row where one is absent

  std::vector<bool> requires_gradient;  // for each of `arguments`

  // Takes the nodes out of a frame, and releases the module's references to tensors.
  Tape(Frame& frame, const std::vector<Ref>& inputs, const std::vector<Ref>& outputs);

  // Returns the gradients of the arguments (null where there is none) from those of the outputs.
  // `saved_tensors` has a tensor for each of `saved`. Runs in `frame`. Throws std::runtime_error.
  std::vector<Ref> backward(Frame& frame, const std::vector<Ref>& saved_tensors,
                            const std::vector<Ref>& gradients);

 private:
  void sort_saved(Frame& frame, Node& node, const std::vector<Ref>& outputs);
  const Layout& target(const Source& source) const;
};

}  // namespace polyop::module
