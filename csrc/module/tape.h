// The gradient of a call: the calls of Forward that it recorded, and what they saved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor.h"

namespace polyop::module {

struct Frame;

// The sizes of a tensor, in place where they are few: a tape holds many.
class Sizes {
 public:
  Sizes() = default;
  Sizes(const int64_t* sizes, int32_t count) : count_(count) {
    if (count > kFew) many_.assign(sizes, sizes + count);
    for (int32_t i = 0; i < count && i < kFew; ++i) few_[i] = sizes[i];
  }
  size_t size() const { return static_cast<size_t>(count_); }
  const int64_t* data() const { return count_ > kFew ? many_.data() : few_; }
  int64_t operator[](size_t i) const { return data()[i]; }
  bool fits(const Tensor& tensor) const {
    if (tensor.ndim != count_) return false;
    for (int32_t i = 0; i < count_; ++i) {
      if (tensor.shape[i] != data()[i]) return false;
    }
    return true;
  }

 private:
  static constexpr int32_t kFew = 5;
  int32_t count_ = 0;
  int64_t few_[kFew];
  std::vector<int64_t> many_;
};

// Shape and dtype of a tensor that is not kept.
struct Layout {
  Sizes shape;
  int32_t row = -1;
  static Layout of(const Tensor& tensor) { return {Sizes(tensor.shape, tensor.ndim), tensor.row}; }
};

// An input of a node, or an output of the call, and where its gradient goes.
struct Edge {
  bool tensor = false;  // an argument of Forward may be none
  bool wanted = false;
  Source source;
  Layout layout;
};

// A recorded call of Forward; owns the module's state of it.
struct Node {
  polyop_node hooks{};
  std::vector<Edge> inputs;
  std::vector<Layout> outputs;
  uint64_t non_differentiable = 0;  // a bit for each output; those past the 64th are not marked
  bool materialize = true;
  std::vector<int> slots;  // for each saved tensor: its place among Tape::saved, or -1

  explicit Node(const polyop_node& given);
  Node(Node&& other) noexcept;
  Node& operator=(Node&&) = delete;
  ~Node();

  std::string name() const;  // of the class
};

// A tensor that is kept until backward.
struct Saved {
  enum Kind { kInput, kOutput, kOwn } kind;
  int index;   // which argument, or which output
  Ref tensor;  // kOwn: the tensor, until it is handed to the framework
  Layout layout;
};

// What a call leaves behind for its gradient.
struct Tape {
  std::vector<Node> nodes;
  std::vector<Saved> saved;
  std::vector<Edge> results;      // the outputs of the call
  std::vector<Layout> arguments;  // the tensors of the call; no row where one is absent

  std::vector<bool> wanted;  // of which of these a gradient

  // Take the nodes of a call; the module's references to tensors are let go.
  Tape(Frame& frame, const std::vector<Ref>& inputs, const std::vector<Ref>& outputs);

  // The gradients of the arguments (null where there is none), from those of the outputs; `given`
  // are the saved tensors, in order. Runs in the current call. Throws std::runtime_error.
  std::vector<Ref> backward(Frame& frame, const std::vector<Ref>& given, const std::vector<Ref>& gradients);

 private:
  void sort_saved(Frame& frame, Node& node, const std::vector<Ref>& outputs);
  const Layout& target(const Source& source) const;
};

}  // namespace polyop::module
