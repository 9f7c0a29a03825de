// extension_add.cpp
#include "function.h"
#include "pytorch_npu_helper.hpp"

// 为NPU设备注册前向实现
at::Tensor my_op_impl_npu(const at::Tensor& self, const at::Tensor& other) {
    // 创建输出内存
    at::Tensor result = at::Tensor(self);

    // 调用底层aclnn接口计算
    EXEC_NPU_CMD(aclnnAddCustom, self, other, result);
    return result;
}

// 为NPU设备注册反向实现
std::tuple<at::Tensor, at::Tensor> my_op_backward_impl_npu(const at::Tensor& self) {
    // 创建输出内存
    at::Tensor result = at::Tensor(self);

    return {result, result};
}

// 寻找注册在my_op上的不同设备的实现
at::Tensor my_op_impl(const at::Tensor& self, const at::Tensor& other) {
    static auto op = torch::Dispatcher::singleton()
        .findSchemaOrThrow("myops::my_op", "")
        .typed<decltype(my_op_impl)>();
    return op.call(self, other);
}
// 寻找注册my_op_backward上的不同设备的实现
std::tuple<at::Tensor, at::Tensor> my_op_backward_impl(const at::Tensor& self) {
    static auto op = torch::Dispatcher::singleton()
        .findSchemaOrThrow("myops::my_op_backward", "")
        .typed<decltype(my_op_backward_impl)>();
    return op.call(self);
}

class MyAddFunction : public torch::autograd::Function<MyAddFunction> {
    public:
        static at::Tensor forward(AutogradContext *ctx, at::Tensor self, at::Tensor other) {
            at::AutoDispatchBelowADInplaceOrView guard;
            return my_op_impl(self, other);
        }

        static tensor_list backward(AutogradContext *ctx, tensor_list grad_outputs) {
            auto grad_output = grad_outputs[0];
            auto result = my_op_backward_impl(grad_output);
            return {std::get<0>(result), std::get<1>(result)};
        }
};

at::Tensor my_op_impl_autograd(const at::Tensor& self, const at::Tensor& other) {
    return MyAddFunction::apply(self, other);
}

TORCH_LIBRARY_IMPL(myops, PrivateUse1, m) {
    m.impl("my_op", &my_op_impl_npu);
    m.impl("my_op_backward", &my_op_backward_impl_npu);
}

// 给自定义op绑定NPU的自动求导实现
// 如果是pytorch 2.1以下的版本，AutogradPrivateUse1需要改成AutogradXLA
TORCH_LIBRARY_IMPL(myops, AutogradPrivateUse1, m) {
    m.impl("my_op", &my_op_impl_autograd);
}

// 为Meta设备注册前向实现
at::Tensor my_op_impl_meta(const at::Tensor& self, const at::Tensor& other) {
    return empty_like(self);
}

// 为Meta设备注册反向实现
std::tuple<at::Tensor, at::Tensor> my_op_backward_impl_meta(const at::Tensor& self) {
    auto result = empty_like(self);
    return std::make_tuple(result, result);
}

TORCH_LIBRARY_IMPL(myops, Meta, m) {
    m.impl("my_op", &my_op_impl_meta);
    m.impl("my_op_backward", &my_op_backward_impl_meta);
}
