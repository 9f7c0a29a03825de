// The kernel of a graph operator: KernelMod, and AclnnKernelMod for one that calls aclnn.
#ifndef POLYOP_MODULE_GRAPH_KERNEL_H
#define POLYOP_MODULE_GRAPH_KERNEL_H

#include "graph_item.h"

namespace mindspore::kernel {

// An argument or an output of a kernel.
class KernelTensor {
 public:
  explicit KernelTensor(polyop::graph::Item item) : item_(std::move(item)) {
    for (const auto& part : item_.items()) parts_.emplace_back(part);
  }
  TypeId dtype_id() const { return item_.type(); }
  TypeId type_id() const { return item_.object_type(); }
  bool IsNone() const { return item_.is_none(); }
  const ShapeVector& GetShapeVector() const { return item_.shape(); }
  const ShapeVector& GetDeviceShapeVector() const { return item_.shape(); }
  bool IsDynamicShape() const { return false; }
  // The data of a dense tensor.
  void* device_ptr() const {
    if (item_.is_none()) return nullptr;
    if (!item_.tensor().is_contiguous())
      throw std::runtime_error("device_ptr() of a tensor that is not dense");
    return item_.tensor().GetDataPtr();
  }
  size_t size() const {
    return item_.is_tensor() ? item_.tensor().numel() * static_cast<size_t>(item_.tensor().get()->itemsize)
                             : 0;
  }
  // The number, text or list. For None, GetValue returns nullopt and GetValueWithCheck throws.
  template <typename T>
  std::optional<T> GetValue() const {
    if (item_.is_none()) return std::nullopt;
    return item_.get<T>();
  }
  template <typename T>
  std::optional<T> GetOptionalValueWithCheck() const {
    return GetValue<T>();
  }
  template <typename T>
  T GetValueWithCheck() const {
    return item_.get<T>();
  }
  const polyop::graph::Item& item() const { return item_; }
  // The items of a list.
  std::vector<KernelTensor*> parts() {
    std::vector<KernelTensor*> all;
    for (KernelTensor& part : parts_) all.push_back(&part);
    return all;
  }

 private:
  polyop::graph::Item item_;
  std::vector<KernelTensor> parts_;
};
using KernelTensorPtr = std::shared_ptr<KernelTensor>;

constexpr int KRET_OK = 0;

// Derive from it and override Launch(). An object serves one call: Init(), Resize(), Launch().
class KernelMod {
 public:
  virtual ~KernelMod() = default;
  virtual bool Init(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&) { return true; }
  // Any result but KRET_OK fails the call.
  virtual int Resize(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&) { return KRET_OK; }
  // `stream` is never null; on the CPU it is a placeholder. Returning false fails the call.
  virtual bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
                      const std::vector<KernelTensor*>& outputs, void* stream) = 0;
  const std::string& kernel_name() const { return primitive_->name(); }
  const PrimitivePtr& primitive() const { return primitive_; }
  void set_primitive(PrimitivePtr primitive) { primitive_ = std::move(primitive); }
  const std::vector<size_t>& GetWorkspaceSizeList() const { return workspace_size_list_; }
  void SetWorkspaceSizeList(const std::vector<size_t>& sizes) { workspace_size_list_ = sizes; }

 protected:
  PrimitivePtr primitive_;
  std::vector<size_t> workspace_size_list_;  // in bytes; Launch() receives them
};
using KernelModPtr = std::shared_ptr<KernelMod>;

// A kernel that runs an aclnn operator. GetWorkSpaceInfo() reads the arguments that are not tensors, Launch()
// calls RunOp().
class AclnnKernelMod : public KernelMod {
 public:
  explicit AclnnKernelMod(std::string op_type) : op_type_(std::move(op_type)) {}
  virtual void GetWorkSpaceInfo(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&) {}
  int Resize(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& outputs) override {
    GetWorkSpaceInfo(inputs, outputs);
    return KRET_OK;
  }

 protected:
  // Runs the operator. The arguments are in the order of its prototype, outputs last.
  template <typename... Args>
  void RunOp(void*, const std::vector<KernelTensor*>&, const Args&... arguments) {
    run(op_type_, arguments...);
  }
  // Does nothing: the provider allocates its own workspace.
  template <typename... Args>
  void GetWorkspaceForResize(const Args&...) {}

  template <typename... Args>
  void run(const std::string& name, const Args&... arguments) {
    Arguments all(sizeof...(Args));
    size_t i = 0;
    (put(&all, i++, arguments), ...);
    polyop::check(polyop::functions()->launch(name.c_str(), all.values.data(), all.values.size(), 0));
  }

  std::string op_type_;

 private:
  struct Arguments {
    explicit Arguments(size_t count) : values(count), owned(count) {}
    ~Arguments() {
      for (size_t i = 0; i < values.size(); ++i) {
        if (!owned[i]) continue;
        polyop::release_tensors(&values[i]);
        polyop::free_value(&values[i]);
      }
    }
    std::vector<polyop_value> values;
    std::vector<bool> owned;
    std::vector<std::unique_ptr<polyop_value[]>> lists;
  };

  template <typename T>
  static void put(Arguments* all, size_t i, const T& argument) {
    if constexpr (std::is_convertible_v<T, std::string>) {
      polyop::Convert<std::string>::out(argument, &all->values[i]);
    } else if constexpr (std::is_null_pointer_v<T>) {
      return;
    } else if constexpr (std::is_convertible_v<T, ValuePtr>) {
      if (argument != nullptr) argument->write(&all->values[i], &all->lists);
      return;
    } else {
      polyop::Convert<T>::out(argument, &all->values[i]);
    }
    all->owned[i] = true;
  }
  static void put(Arguments* all, size_t i, KernelTensor* argument) {
    all->owned[i] = true;
    if (argument != nullptr) argument->item().out(&all->values[i]);
  }
  static void put(Arguments* all, size_t i, const KernelTensorPtr& argument) { put(all, i, argument.get()); }
  static void put(Arguments* all, size_t i, const std::vector<KernelTensor*>& arguments) {
    std::vector<ms::Tensor> tensors;
    for (const KernelTensor* argument : arguments) tensors.push_back(argument->item().tensor());
    polyop::Convert<std::vector<ms::Tensor>>::out(tensors, &all->values[i]);
    all->owned[i] = true;
  }
};
using AclnnCustomKernelMod = AclnnKernelMod;
using CustomAclnnKernelMod = AclnnKernelMod;

}  // namespace mindspore::kernel

namespace mindspore::device::ascend {

// The value of a kernel's argument, or the tensors of a list of tensors.
template <typename T>
T ConvertKernelTensor(kernel::KernelTensor* tensor) {
  if constexpr (std::is_same_v<T, std::vector<kernel::KernelTensor*>>) {
    return tensor->parts();
  } else {
    return tensor->GetValueWithCheck<T>();
  }
}

}  // namespace mindspore::device::ascend

namespace polyop::graph {

// Converts a number to a value of a dtype.
template <typename T>
mindspore::ValuePtr scalar(T number, ms::TypeId type) {
  using namespace mindspore;
  switch (type) {
    case kNumberTypeBool:
      return MakeValue(static_cast<bool>(number));
    case kNumberTypeFloat16:
    case kNumberTypeBFloat16:
    case kNumberTypeFloat32:
    case kNumberTypeFloat64:
      return MakeValue(static_cast<double>(number));
    default:
      return MakeValue(static_cast<int64_t>(number));
  }
}

}  // namespace polyop::graph

#define MAKE_SCALAR(number, type, scalar_) (scalar_) = ::polyop::graph::scalar(number, type)

#define DEFINE_GET_WORKSPACE_FOR_RESIZE() \
  template <typename... Args>             \
  void GetWorkspaceForResize(const Args&...) {}

// GetWorkspaceForResize<name>() and RunOp<name>(), for a kernel of several aclnn operators.
#define DEFINE_GET_WORKSPACE_FOR_OPS(OP_TYPE, NAME)                                      \
  template <typename... Args>                                                            \
  void GetWorkspaceForResize##NAME(const Args&...) {}                                    \
  template <typename... Args>                                                            \
  void RunOp##NAME(void*, const std::vector<KernelTensor*>&, const Args&... arguments) { \
    this->run(#OP_TYPE, arguments...);                                                   \
  }

#endif
