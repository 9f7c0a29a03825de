"""``Library``: operators defined in Python, one registration at a time and in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...call import registry
from ...call.bound import BoundOperator
from ...core import locks
from ...core.dims.claims import Claims, check_keywords
from ...core.errors import ArgumentTypeError, ArgumentValueError, SchemaError
from ...core.origin import Origin, caller, module_frame, runs_again
from ...core.parse import parse
from ...core.spec import WITH_C_FUNCTIONS
from ...kernels.triton.kernel import refuse_triton
from ..operator import checked_schema, given_dims
from . import namespace_owners
from .registered import Parts
from .torch_rules import batch_of, gradient_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Library:
    """The operators of a namespace, defined in Python.

    Schemas, kernels and rules are registered in any order, and each method that takes a function is
    also a decorator. An operator is assembled at its first use, as ``lib.my_op`` or by :meth:`complete`;
    a later registration changes it. ``lib["define"]`` is the operator ``define``, as ``lib.define`` is
    the method. A namespace belongs to one library, in C++ or in Python: a second one raises
    ``SchemaError`` that names the first. Running a notebook cell again replaces the library.

    >>> import numpy as np
    >>> lib = Library("docs")
    >>> @lib.define("halve(Tensor x) -> Tensor")
    ... def halve(x):
    ...     return x / 2
    >>> lib.fake("halve", lambda x: x)
    >>> lib.halve(np.array([4.0]))
    array([2.])
    """

    def __init__(self, namespace: str) -> None:
        """Claim the namespace; raises ``SchemaError`` if another library has it."""
        self._origin = caller()
        if not namespace.isidentifier():
            raise SchemaError(
                "Library", "the namespace must be an identifier", repr(namespace), where=self._origin
            )
        self.namespace = namespace
        self._parts: dict[str, Parts] = {}
        self._frame = module_frame()
        owner = namespace_owners.Owner(str(self._origin), self, self)
        with locks.define:
            old = namespace_owners.owner(namespace)
            if old is not None and isinstance(old.library, Library) and self._replaces(old.library):
                old.library._retire()  # noqa: SLF001 - of this class
            else:
                namespace_owners.check_free(
                    namespace, owner, "choose another name, or register in that library"
                )
            namespace_owners.claim(namespace, owner)

    def define(
        self, schema: str, *, dims: str | None = None, **claims: Unpack[Claims]
    ) -> Callable[[Any], Any]:
        """Define an operator: ``"name(Tensor x, float alpha=1.0) -> Tensor"``.

        ``dims``, ``parallel``, ``sum``, ``max``, ``min`` and ``halo`` say what its dimensions are, as in
        :func:`polyop.operator`: ``dims="b i, i o -> b o", parallel="b o", sum="i"``. :meth:`fake` then gives
        the dtypes.

        Returns a decorator that registers a function as its kernel for the CPU. Raises
        ``SchemaError`` for a schema that cannot be parsed, or a second one of that name, and for dimensions
        that do not fit it.
        """
        check_keywords(claims, "define", ("dims",))
        origin = caller()
        name, mark, rest = schema.partition("(")
        parsed = checked_schema(
            parse(f"{self.namespace}::{self._name(name.strip(), origin)}{mark}{rest}"), {}, origin
        )
        given = given_dims(dims, parsed, claims, origin)
        with locks.define:
            parts = self._part(parsed.name)
            if parts.schema is not None:
                rule = f"the schema is given twice, first at {parts.schema[1]}"
                raise SchemaError(parsed.qualified_name, rule, where=origin)
            parts.schema, parts.dims = (parsed, origin), given

        def kernel(function: Any) -> Any:
            self.impl(parsed.name, function)
            return function

        return kernel

    def impl(
        self, name: str, kernel: Any = None, device: str = "cpu", *, dtypes: Sequence[Any] | None = None
    ) -> Any:
        """Register a kernel, of a form that :func:`polyop.operator` takes, for a device type.

        ``dtypes`` are those that the kernel takes. Raises ``ArgumentValueError`` for another device, or one
        that the kernel does not run on, ``SchemaError`` for a second kernel for a device, and
        ``ArgumentTypeError`` for a Triton kernel, which needs a ``grid=``.
        """
        if kernel is None:
            return self._decorator(lambda function: self.impl(name, function, device, dtypes=dtypes))
        origin = caller()
        subject = f"{self.namespace}::{self._name(name, origin)}"
        refuse_triton(kernel, "Library.impl", subject, origin)
        if device not in WITH_C_FUNCTIONS:
            raise ArgumentValueError(
                subject,
                f"the device must be one of {', '.join(WITH_C_FUNCTIONS)}",
                repr(device),
                where=origin,
            )
        self._register(name, "kernels", device, (kernel, dtypes, origin), f"kernel for {device}")
        return None

    def fake(self, name: str, function: Any = None) -> Any:
        """Register the infer rule: a function of specs, or the name of an argument of the outputs' spec.

        With ``dims=``, a dtype or the name of a tensor argument gives the dtypes of the outputs. A function
        gives them too, and has to give the shapes of ``dims=``: a call for which they differ is refused.
        """
        return self._rule("fake", name, function)

    def gradient(self, name: str, function: Any = None) -> Any:
        """Register the gradient rule: inputs, output, output gradient -> input gradients."""
        return self._rule("gradient", name, function)

    def jvp(self, name: str, function: Any = None) -> Any:
        """Register the forward-mode rule: inputs, output, input tangents -> output tangent."""
        return self._rule("jvp", name, function)

    def batch(self, name: str, rule: Any = None) -> Any:
        """Register how ``vmap`` is done: ``"elementwise"``, or (in_dims, inputs) -> (outputs, out_dims)."""
        return self._rule("batch", name, rule)

    register_fake = fake

    def register_autograd(
        self, name: str, backward: Any = None, *, setup_context: Callable[..., Any] | None = None
    ) -> Any:
        """Register a gradient in the form of ``torch.library.register_autograd``, for every framework.

        ``setup_context(ctx, inputs, output)`` keeps what ``backward(ctx, *grads)`` needs; it returns a
        gradient or None for each input. ``ctx`` has ``save_for_backward``, ``saved_tensors``,
        ``needs_input_grad`` (all True) and any attributes.
        """
        if backward is None:
            return self._decorator(
                lambda function: self.register_autograd(name, function, setup_context=setup_context)
            )
        return self._rule("gradient", name, gradient_of(backward, setup_context))

    def register_vmap(self, name: str, function: Any = None) -> Any:
        """Register a batch rule in the form of ``torch.library.register_vmap``, for every framework.

        ``function(info, in_dims, *inputs)`` returns the outputs and the axes of their samples.
        ``info.batch_size`` is the number of samples.
        """
        if function is None:
            return self._decorator(lambda rule: self.register_vmap(name, rule))
        return self._rule("batch", name, batch_of(function))

    def complete(self) -> tuple[BoundOperator, ...]:
        """Assemble all operators and return them; raises the first error in any of them."""
        return tuple(self[name] for name in list(self._parts))

    def __getitem__(self, name: str) -> BoundOperator:
        """Return the operator, assembled if it is not yet.

        Raises ``KeyError`` for an unknown name, ``SchemaError`` for an operator without a schema,
        ``InferError`` if its outputs' shapes are not known, and what :func:`polyop.operator` raises for
        its parts.
        """
        short = self._name(name, caller())
        parts = self._parts.get(short)
        if parts is None:
            raise KeyError(f"library {self.namespace} has no operator {short}; there are {self._names()}")
        return parts.bound or self._assembled(parts, f"{self.namespace}::{short}")

    @staticmethod
    def _assembled(parts: Parts, name: str) -> BoundOperator:
        """Return the operator with all its parts of now."""
        while True:
            with locks.define:
                now = parts.copy()
            operator = now.assemble(name)  # without the lock: it may compile
            with locks.define:
                if now.version != parts.version:
                    continue  # another thread has registered a part
                if parts.bound is None:
                    parts.bound = BoundOperator(operator)
                else:
                    parts.bound.replace(operator)
                parts.assembled = now.version
                return parts.bound

    def __getattr__(self, name: str) -> BoundOperator:
        if name.startswith("__") or name not in self.__dict__.get("_parts", ()):
            there = self._names() if "_parts" in self.__dict__ else "none"
            raise AttributeError(
                f"no operator {name} in library {self.__dict__.get('namespace')}; there are {there}"
            )
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parts]

    def __iter__(self) -> Iterator[BoundOperator]:
        """Yield the operators, assembled."""
        return iter(self.complete())

    def __repr__(self) -> str:
        """Return the namespace and the operators' names."""
        return f"<polyop library {self.namespace}: {self._names()}>"

    def _retire(self) -> None:
        """Release the operators' names, for the library that replaces this one."""
        for parts in self._parts.values():
            if parts.bound is not None and registry.named(parts.bound.name) is parts.bound:
                registry.discard(parts.bound)
                parts.bound.retire()

    def _replaces(self, old: Library) -> bool:
        """Whether this library comes from the same module or notebook cell as the old one, run again."""
        return runs_again(old._frame, self._frame)

    def _names(self) -> str:
        return ", ".join(self._parts) or "none"

    def _part(self, name: str) -> Parts:
        return self._parts.setdefault(name, Parts())

    def _name(self, name: Any, origin: Origin) -> str:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"library {self.namespace}", "an operator's name must be text", repr(name), where=origin
            )
        space, mark, short = name.rpartition("::")
        if mark and space != self.namespace:
            raise SchemaError(name, f"is not in the namespace {self.namespace}", where=origin)
        return short

    @staticmethod
    def _decorator(register: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def decorate(function: Any) -> Any:
            register(function)
            return function

        return decorate

    def _rule(self, kind: str, name: str, rule: Any) -> Any:
        if rule is None:
            return self._decorator(lambda function: self._rule(kind, name, function))
        origin = caller()
        self._register(name, "rules", kind, (rule, origin), f"{kind} rule")
        return None

    def _register(self, name: str, table: str, key: str, row: tuple[Any, ...], what: str) -> None:
        """Register a part and assemble an operator in use again; without the part, if that fails.

        Raises ``SchemaError`` for a second part of the same key.
        """
        short = self._name(name, row[-1])
        with locks.define:
            parts = self._part(short)
            rows: dict[str, Any] = getattr(parts, table)
            first = rows.setdefault(key, row)
            if first is row:
                parts.version += 1
            is_late = parts.bound is not None and parts.assembled != parts.version
        if is_late:
            self._assemble_again(parts, rows, key, is_new=first is row)
        if first is not row:
            rule = f"a {what} is given twice, first at {first[-1]}"
            raise SchemaError(f"{self.namespace}::{short}", rule, where=row[-1])

    def _assemble_again(self, parts: Parts, rows: dict[str, Any], key: str, *, is_new: bool) -> None:
        """Assemble an operator in use with a part; without a new part, if that fails.

        Whoever is refused because another thread has just given the part calls an operator that has it.
        """
        try:
            assert parts.bound is not None
            self._assembled(parts, parts.bound.name)
        except Exception:
            if not is_new:
                return
            with locks.define:
                del rows[key]
                parts.version += 1
            raise
