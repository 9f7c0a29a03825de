"""The code of docs/hosts/paddle.md."""

# [first]
import paddle

import polyop

square = polyop.operator(
    "page::square(Tensor x) -> Tensor",
    lambda x: x * x,
    infer="x",
    gradient=lambda x, out, dout: (2 * x * dout,),
)
x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
square(x).sum().backward()
print(x.grad)  # [2, 4, 6]

(slope,) = paddle.grad(square(x).sum(), x, create_graph=True)
print(paddle.grad(slope.sum(), x)[0])  # [2, 2, 2]


@paddle.jit.to_static(full_graph=True)
def program(x):
    return square(x) + 1


print(program(x))  # [2, 5, 10]
# [/first]

assert x.grad.tolist() == [2, 4, 6]
assert program(x).tolist() == [2, 5, 10]
