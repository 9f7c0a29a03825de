"""Regressions at the edges of the call path: wrong values, crashes and wrong error messages."""

import math

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
X = np.arange(3, dtype=np.float32)


def name(count=iter(range(1000))):  # noqa: B008 - one counter for the module
    return f"edges::op{next(count)}"


def define(schema, kernel, **options):
    return polyop.operator(f"{name()}{schema}", kernel, **options)


def c_kernel(body, companions=""):
    code = '#include "custom_aot_extra.h"\n' + companions
    code += 'extern "C" int f(int n, void **p, int *d, int64_t **s, const char **t, void *st, void *e) {'
    code += " (void)n, (void)p, (void)d, (void)s, (void)t, (void)st, (void)e; " + body + " }"
    return polyop.source(code=code, function="f")


def test_none_in_a_list_of_tensors_is_refused(kernels):
    op = define("(Tensor[] xs) -> Tensor", kernels("add_all"), infer=lambda xs: xs[0])
    with pytest.raises(TypeError, match=r"argument xs\[1\]: must be a tensor, but got None"):
        op([X, None])


def test_dtypes_end_with_null_where_workspaces_follow():
    init = 'extern "C" int fInit(int *, int64_t **, const char **, AotExtra *e) { e->SetWorkSpace({8, 8, 8}); return 0; }\n'
    kernel = c_kernel("int k = 0; while (t[k]) ++k; ((float *)p[1])[0] = (float)k; return 0;", init)
    assert define("(Tensor x) -> Tensor", kernel, infer="x")(X)[0] == 2


def test_absent_inputs_keep_their_place_in_cpp_inference():
    shape = 'extern "C" std::vector<int64_t> fInferShape(int *n, int64_t **s, AotExtra *) { return std::vector<int64_t>(s[1], s[1] + n[1]); }\n'
    kind = 'enum TypeId : int {};\nextern "C" TypeId fInferType(std::vector<TypeId> t, AotExtra *) { return t[1]; }\n'
    op = define(
        "(Tensor? a, Tensor x) -> Tensor", c_kernel("((float *)p[2])[0] = 5; return 0;", shape + kind)
    )
    assert op(None, X).shape == (3,)


def test_the_lengths_of_lists_reach_the_kernel():
    body = 'int64_t a = 0, b = 0; polyop_get_int(e, "xs", &a); polyop_get_int(e, "ys", &b); ((float *)p[n - 1])[0] = (float)(10 * a + b); return 0;'
    op = define("(Tensor[] xs, Tensor[] ys) -> Tensor", c_kernel(body), infer=lambda xs, ys: xs[0])
    assert op([X], [X, X])[0] == 12 and op([X, X], [X])[0] == 21


@pytest.mark.parametrize("value", [[True, 2.5], ["a", 1], [1, [2, 3]], "a\0b"])
def test_mixed_attributes_are_refused(kernels, value):
    op = polyop.Custom(f"{kernels('square').path}:square", lambda x: x, lambda x: x, "aot").add_prim_attr(
        "v", value
    )
    with pytest.raises(RuntimeError, match="an attribute cannot be passed"):
        op(X)


@pytest.mark.parametrize("value", [2**63, "\ud800", X, torch.tensor(2.0)])
def test_attributes_out_of_range(cube, value):
    op = define("(Tensor x, int k=0, str s='') -> Tensor", lambda x, k, s: x, infer="x")
    with pytest.raises(TypeError, match="argument [ks]: must be (int|str)"):
        op(X, value) if not isinstance(value, str) else op(X, 0, value)
    with pytest.raises(TypeError, match="argument a: must be float"):
        cube(torch.ones(2, dtype=torch.float64), torch.tensor(2.0, requires_grad=True))


def test_keyword_only_arguments_are_not_taken_by_position():
    op = define("(Tensor x, *, float a) -> Tensor", lambda x, a: x * np.float32(a), infer="x")
    for x in (X, X[::2], torch.ones(2)):
        with pytest.raises(TypeError, match="takes 1 positional argument "):
            op(x, 2.0)


def test_sized_defaults_are_lists_on_every_host():
    op = define("(Tensor x, float[2] k=3) -> Tensor", lambda x, k: x * np.float32(len(k) + sum(k)), infer="x")
    assert op(X)[1] == op(torch.tensor(X))[1] == op.torch(torch.tensor(X))[1] == 8


def test_masked_arrays_are_refused(plain):
    with pytest.raises(TypeError, match="must have no mask"):
        plain(np.ma.array(X, mask=[0, 1, 0]))


def test_a_dtype_error_names_the_operator_and_the_argument(plain):
    with pytest.raises(
        TypeError, match="host_tests::plain: argument x: dtype: must be one that kernels take"
    ):
        plain(X.astype(object))


def test_elements_without_bytes_are_refused(plain):
    without = np.zeros(3, dtype=[("nothing", "S0"), ("number", "f8")])["nothing"]
    loop = polyop.kernel(twice)
    for op in (plain, loop):
        with pytest.raises(TypeError, match="argument x: dtype: must be one that kernels take"):
            op(without)


def twice(x):
    y = np.zeros(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
    return y


def test_forward_mode_under_no_grad_is_kept(cube):
    from torch.autograd import forward_ad

    x = torch.ones(2, dtype=torch.float64)
    with torch.no_grad(), forward_ad.dual_level():
        out = cube(forward_ad.make_dual(x, x))
        assert forward_ad.unpack_dual(out).tangent.tolist() == [3, 3]


def test_written_arguments_have_no_derivative_of_any_kind(scale_):
    with pytest.raises(
        RuntimeError, match="writes an argument in place, and such an operator has no gradient"
    ):
        torch.func.jvp(lambda w: scale_(w * 1, 2.0), (torch.ones(2),), (torch.ones(2),))
    with pytest.raises(ValueError, match="is written in place, so it cannot have a gradient rule"):
        define("(Tensor(a!) x) -> ()", lambda x: None, gradient=lambda x, out, d: (None,))


@pytest.mark.slow(1)
@pytest.mark.parametrize("returns", ["Tensor(a!)", "(Tensor(a!), Tensor)"])
def test_aliasing_returns_under_compile(returns):
    def add_one(x):
        x += 1
        return None if returns == "Tensor(a!)" else x.copy()

    op = define(f"(Tensor(a!) x) -> {returns}", add_one, infer="x" if "," in returns else None)

    def f(t):
        out = op(t.clone())
        return out if returns == "Tensor(a!)" else out[0] + out[1]

    torch._dynamo.reset()
    t = torch.ones(2)
    torch.testing.assert_close(torch.compile(f, fullgraph=True, backend="aot_eager")(t), f(t))


def test_vmap_over_a_written_argument_without_a_batch(kernels):
    op = define("(Tensor x, Tensor(a!) y) -> ()", lambda x, y: y.__iadd__(x))
    with pytest.raises(RuntimeError, match="argument y is written in place, and has no batch dimension"):
        torch.vmap(op, in_dims=(0, None), out_dims=None)(torch.ones(2, 3), torch.zeros(3))


@pytest.mark.filterwarnings("ignore::polyop.FallbackWarning")
def test_vmap_over_lists_and_absent_arguments_that_are_written(kernels):
    op = define("(Tensor x, Tensor(a!)[] y) -> ()", lambda x, y: [one.__iadd__(x) for one in y] and None)
    batched, shared = torch.zeros(2, 3), torch.zeros(3)
    torch.vmap(lambda x, y: (op(x, [y]), x)[1])(torch.ones(2, 3), batched)
    assert batched.eq(1).all()
    for more in ([], [batched]):
        with pytest.raises(RuntimeError, match="argument y is written in place, and has no batch dimension"):
            torch.vmap(lambda x, *y: op(x, [*y, shared]))(torch.ones(2, 3), *more)
    optional = define("(Tensor x, Tensor(a!)? y=None) -> Tensor", lambda x, y: x * 2, infer="x")
    assert torch.vmap(optional)(torch.ones(2, 3)).eq(2).all()


@pytest.mark.parametrize("returns", ["Tensor", "(Tensor, Tensor)", "()"])
def test_symbolic_trace_has_the_operator_as_a_node(returns):
    def kernel(x, y, k=1.0):
        if returns == "()":
            y += k * x
            return None
        return x + k * y if returns == "Tensor" else (x + k * y, x - y)

    outputs = {"Tensor": "x", "(Tensor, Tensor)": lambda x, y, k: (x, x), "()": None}[returns]
    written = "(a!)" if returns == "()" else ""
    op = define(
        f"(Tensor x, Tensor{written} y, float k=1.0) -> {returns}",
        lambda x, y, k: kernel(x, y, k),
        **({"infer": outputs} if outputs else {}),
    )

    def model(x, y):
        out = op(x, y, k=2.0)
        return y + 0 if returns == "()" else out if returns == "Tensor" else out[0] * out[1]

    traced = torch.fx.symbolic_trace(model)
    assert [str(node.target) for node in traced.graph.nodes][2] == f"{op.name.replace('::', '.')}.default"
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    torch.testing.assert_close(traced(x, y.clone()), model(x, y.clone()))


@pytest.mark.filterwarnings("ignore:.*vmap runs one call per sample")
@pytest.mark.parametrize(
    ("schema", "call"),
    [
        ("(Tensor a, *, Tensor(a!) out) -> ()", lambda op, a, out: op(a, out=out)),
        ("(Tensor[] a, *, float k=2.0, Tensor(a!) out) -> Tensor(a!)", lambda op, a, out: op([a], out=out)),
        ("(*, Tensor a, Tensor(a!) out) -> Tensor", lambda op, a, out: op(a=a, out=out)),
    ],
)
def test_tensors_that_are_written_by_keyword(schema, call):
    """``torch.library.register_vmap`` refuses them, so polyop batches them itself."""

    def double(a, out, k=2.0):
        np.multiply(a[0] if isinstance(a, (tuple, list)) else a, 2, out=out)
        return out + 1 if schema.endswith("-> Tensor") else None

    fresh = {"infer": lambda a, out: out} if schema.endswith("-> Tensor") else {}
    op = define(schema, double if "k=" not in schema else lambda a, k, out: double(a, out, k), **fresh)
    a, want = np.arange(6, dtype=np.float32).reshape(2, 3), [[0, 2, 4], [6, 8, 10]]

    def written(a, out, op=op):
        call(op, a, out)
        return out

    def compiled(a, out):
        call(op, a, out)
        return out + 0

    def zeros():
        return torch.zeros(2, 3)

    torch._dynamo.reset()
    overload = getattr(torch.ops.edges, op.__name__)
    x = torch.tensor(a)
    assert written(a, np.zeros_like(a)).tolist() == want
    assert written(x, zeros()).tolist() == written(x, zeros(), overload).tolist() == want
    assert torch.compile(compiled, fullgraph=True, backend="aot_eager")(x, zeros()).tolist() == want
    assert torch.vmap(written)(x, zeros()).tolist() == want
    assert torch.vmap(written, in_dims=(1, 0))(x.T.contiguous(), zeros()).tolist() == want
    assert torch.vmap(torch.vmap(written))(x[None], zeros()[None]).tolist() == [want]
    with pytest.raises(RuntimeError, match="argument out is written in place, and has no batch dimension"):
        torch.vmap(lambda a: written(a, torch.zeros(3)))(x)


def test_elementwise_batching_broadcasts_each_sample():
    op = define(
        "(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x * y,
        infer=lambda x, y: polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype),
        batch="elementwise",
    )
    x, y = torch.arange(12.0).reshape(2, 2, 3), torch.arange(6.0).reshape(2, 3)
    torch.testing.assert_close(torch.vmap(op)(x, y), torch.vmap(torch.mul)(x, y))


def test_integer_outputs_do_not_stop_forward_mode():
    op = define("(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x.astype(np.int64)), infer=lambda x: (x, polyop.Spec(x.shape, "int64")), gradient=lambda x, out, d: (d[0] * 2,))  # fmt: skip
    out, tangent = torch.func.jvp(lambda t: op(t)[0], (torch.ones(2),), (torch.ones(2),))
    assert out.tolist() == tangent.tolist() == [2, 2]


def test_infer_rules_that_import_or_keep_keyword_defaults_are_asked_each_time():
    from polyop.core.infer import is_repeatable

    def imports(x):
        import math as m

        return [m.prod(x)]

    assert not is_repeatable(imports)
    assert not is_repeatable(lambda x, *, c=[1]: c)


def test_a_library_that_was_built_again_is_read_again(tmp_path):
    from polyop.build import build

    path, results = tmp_path / "value.so", []
    for value in (1, 2):
        build(
            code=f"int f(int n, void **p) {{ ((float *)p[1])[0] = {value}; return n < 0; }}",
            language="c",
            output=path,
        )
        results.append(define("(Tensor x) -> Tensor", f"{path}:f", infer="x"))
    assert [op(X)[0] for op in results] == [1, 2]


def test_constants_of_the_information_for_another_target_stay_away():
    def information(target, value):
        return (
            polyop.CustomRegOp()
            .input(0, "x")
            .output(0, "y")
            .attr("k", "required", "float", value=value)
            .target(target)
            .get_op_info()
        )

    body = 'double k; if (polyop_get_float(e, "k", &k)) return 1; ((float *)p[1])[0] = (float)k; return 0;'
    kernel = c_kernel(body)
    op = polyop.Custom(
        f"{kernel.path}:f",
        lambda x: x,
        lambda x: x,
        "aot",
        reg_info=[information("CPU", 2.0), information("GPU", 5.0)],
    )
    assert op(X)[0] == 2


def test_attribute_names_that_no_schema_can_have():
    info = (
        polyop.CustomRegOp()
        .input(0, "x")
        .output(0, "y")
        .attr("alpha-1", "required", "float")
        .attr("x", "required", "float")
    )
    body = 'double a, b; if (polyop_get_float(e, "alpha-1", &a) || polyop_get_float(e, "x", &b)) return 1; ((float *)p[1])[0] = (float)(a + b); return 0;'
    op = polyop.Custom(
        f"{c_kernel(body).path}:f",
        lambda x, a, b: x,
        lambda x, a, b: x,
        "aot",
        reg_info=info.target("CPU").get_op_info(),
    )
    assert op(X, 1.5, 2.0)[0] == 3.5


def test_words_of_a_kernel_that_did_not_fail_are_not_kept(kernels):
    quiet = define("(Tensor x) -> Tensor", c_kernel('polyop_fail(e, "not a failure"); return 0;'), infer="x")
    seven = define("(Tensor x) -> Tensor", kernels("fails_with_7"), infer="x")
    quiet(X)
    with pytest.raises(RuntimeError, match="returned 7; any value"):
        seven(X)


def test_a_missing_attribute_is_named():
    op = define(
        "(Tensor x) -> Tensor", c_kernel('double v; return polyop_get_float(e, "facotr", &v);'), infer="x"
    )
    with pytest.raises(RuntimeError, match="there is no attribute called facotr"):
        op(X)


@pytest.mark.parametrize("result", [np.float64(1e300), 1e300])
def test_a_python_result_that_does_not_fit(result):
    op = define("(Tensor x) -> Tensor", lambda x: result, infer=lambda x: polyop.Spec((), x.dtype))
    with pytest.raises(RuntimeError, match="must (be|fit) float32"):
        op(X)
    assert math.isinf(
        define("(Tensor x) -> Tensor", lambda x: math.inf, infer=lambda x: polyop.Spec((), x.dtype))(X)
    )


def test_dtypes_as_attributes(kernels):
    op = define(
        "(Tensor x, ScalarType d) -> Tensor",
        lambda x, d: x.astype(d),
        infer=lambda x, d: polyop.Spec(x.shape, d),
    )
    assert op(X, "float64").dtype == np.float64 and op(torch.tensor(X), torch.float64).dtype == torch.float64


@pytest.mark.parametrize(("schema", "words"), [
    ("edges::big(Tensor x, int k=9223372036854775808) -> Tensor", "more than 64 bits"),
    ("aten::mine(Tensor x) -> Tensor", "the namespace 'aten' is reserved"),
    ("edges::c(Tensor x, complex z) -> Tensor", "cannot be passed to a kernel"),
])  # fmt: skip
def test_schemas_that_cannot_work_are_refused_and_leave_the_name_free(schema, words):
    with pytest.raises(ValueError, match=words):
        polyop.operator(schema, lambda x: x, infer="x")


@pytest.mark.parametrize(("options", "words"), [
    ({"gradient": 3}, "gradient must be a function, but got 3"),
    ({"gradient": lambda x: x}, "gradient is called with \\(x, out, dout\\), which the function does not take"),
    ({"jvp": lambda x: x}, "jvp is called with \\(x, out, tangents\\)"),
    ({"infer": 3}, "must be a function, or the name of an argument, but got 3"),
    ({"batch": "rows"}, "batch must be 'elementwise' or a function"),
    ({"batch": "elementwize", "infer": None}, "batch must be 'elementwise' or a function"),
    ({"dtypes": "float32"}, r"dtypes must be a list, but got 'float32'\n.*\n  write dtypes=\['float32'\]"),
])  # fmt: skip
def test_rules_are_checked_at_definition(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        define("(Tensor x) -> Tensor", lambda x: x, **{"infer": "x", **options})


def test_custom_with_scalars_compiles():
    op = polyop.Custom(lambda x, k: x * k, lambda x, k: x, lambda x, k: x, "pyfunc")
    f = torch.compile(lambda t: op(t, 3) + op(t, 2.5), fullgraph=True, backend="aot_eager")
    assert f(torch.ones(2)).tolist() == [5.5, 5.5]


def test_custom_whose_inputs_are_unknown_learns_them_of_tracers(kernels):
    op = polyop.Custom(f"{kernels('square').path}:square", (3,), "float32", "aot")
    with pytest.raises(RuntimeError, match="call it once on real tensors, or give reg_info"):
        _ = op.torch
    compiled = torch.compile(lambda t: op(t), fullgraph=True, backend="aot_eager")
    assert (compiled(torch.tensor(X)).numpy() == X * X).all()
    assert (op(X) == X * X).all() and (op.torch(torch.tensor(X)).numpy() == X * X).all()


def test_a_custom_with_a_1_tuple_through_torch_ops():
    op = polyop.Custom(lambda x: x * 2, ((3,),), ("float32",), "pyfunc", lambda x, out, dout: (dout[0] * 2,))
    x = torch.tensor(X, requires_grad=True)
    op(x)[0].sum().backward()
    op.torch(x).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]


def test_customs_go_when_nobody_holds_them():
    import gc
    import weakref

    op = polyop.Custom(lambda x: x * 2, lambda x: x, lambda x: x, "pyfunc")
    op(X)
    alive = weakref.ref(op)
    del op
    gc.collect()
    assert alive() is None


def test_threads_may_call_a_custom_with_different_signatures():
    from concurrent.futures import ThreadPoolExecutor

    op = polyop.Custom(lambda x, k: x * np.float32(k), lambda x, k: x, lambda x, k: x, "pyfunc")
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(lambda i: float(op(X, 2 if i % 2 else 2.5)[1]), range(200)))
    assert result == [2 if i % 2 else 2.5 for i in range(200)]
