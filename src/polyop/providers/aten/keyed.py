"""Operators that draw random numbers, with a key as their first argument."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...call import registry
from ...call.host import Host, host_of
from ...core import locks
from ...core.derived_names import derived_from
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError, ArgumentValueError
from ...core.limits import shown
from ...core.schema import Argument, Schema, Type
from ...core.spec import Spec
from .function import TorchFunction
from .infer import FromMeta
from .overloads import derived_namespace
from .torch_operator import TorchOperator

_state = locks.shared("seeding of PyTorch", locks.Level.RUN)


class Keyed(TorchOperator):
    """An operator that draws its random numbers from a key, which is a tensor of integers.

    The same key gives the same numbers, in a compiled program and in the gradient too.
    """

    def __init__(self, first: TorchFunction, repeats: Mapping[int, int]) -> None:
        """Take the function without a key."""
        names = [argument.name for argument in first.schema.arguments]
        self.first = first
        self._generator = names.index("generator") if "generator" in names else None
        function = TorchFunction(_schema(first.schema, self._generator), self._run)
        places = {place + (1 if self._before_generator(place) else 0): n for place, n in repeats.items()}
        doc = f"{first.schema}, with random numbers that follow from a key."
        super().__init__(function, _Shapes(first, self._generator), places, doc)

    def _before_generator(self, place: int) -> bool:
        return self._generator is None or place < self._generator

    def _run(self, key: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        seed = seed_of(key)
        if self._generator is None:
            with _seeded(seed):
                return self.first.function(*args, **kwargs)
        generator = torch.Generator(_device(args, kwargs) or "cpu").manual_seed(seed)
        return self.first.function(*args, generator=generator, **kwargs)


class _Shapes:
    """The infer rule: that of the function without the key."""

    repeatable = True

    def __init__(self, first: TorchFunction, generator: int | None) -> None:
        self.generator = generator
        self.rule = FromMeta(first)

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        others = list(arguments[1:])
        if self.generator is not None:
            others.insert(self.generator, None)
        return self.rule(others)


_KEY_RULE = "must be a key: one of jax.random.key(0), or an array of one or two integers"


def is_key(name: str, value: Any) -> bool:
    """Whether a ``generator=`` is a key, rather than a generator of PyTorch, or None.

    Raises ``ArgumentValueError`` for what is none of them.
    """
    if value is None or isinstance(value, torch.Generator):
        return False
    subject = f"{name}: generator"
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise ArgumentTypeError(subject, _KEY_RULE, f"{shown(value)} ({type(value).__name__})")
    if _is_typed(value):
        if value.shape:
            hint = "jax.vmap takes an array of keys, one for each sample"
            raise ArgumentValueError(subject, _KEY_RULE, f"{_count(value)} keys", hint=hint)
        return True
    if not _is_integer(value) or _count(value) not in (1, 2):
        seen = f"an array of {value.dtype} with shape {tuple(value.shape)}"
        raise ArgumentValueError(subject, _KEY_RULE, seen)
    return True


def _is_typed(value: Any) -> bool:
    """Whether a value is a key of JAX that has a dtype of its own."""
    jax = sys.modules.get("jax")
    return (
        jax is not None
        and isinstance(value, jax.Array)
        and bool(jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key))
    )


def _count(value: Any) -> int:
    return math.prod(value.shape)


def _is_integer(value: Any) -> bool:
    try:
        return dtype(value.dtype).kind in ("int", "uint")
    except ArgumentTypeError:
        return False


def check_host(name: str, key: Any, host: Host) -> None:
    """Raise ``ArgumentValueError`` for a key of another framework than the one whose array is asked for."""
    owner = host_of(key)
    if owner is not host:
        rule = "must be a key of the framework that host= or like= names"
        seen = f"a key of {owner.name if owner else 'no framework'} and {host.name}"
        raise ArgumentValueError(
            f"{name}: generator", rule, seen, hint="convert the key first or leave host= out"
        )


def key_data(key: Any) -> Any:
    """Return a key as an array of integers: those of JAX may have a dtype of their own."""
    return sys.modules["jax"].random.key_data(key) if _is_typed(key) else key


def seed_of(key: torch.Tensor) -> int:
    """Return the seed of a key: a number of 63 bits that follows from its bytes."""
    digest = hashlib.sha256(np.ascontiguousarray(key.detach().cpu().numpy()).tobytes()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's own generator, and give it its state back."""
    with _state, torch.random.fork_rng(devices=()):
        torch.random.default_generator.manual_seed(seed)
        yield


def _device(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
    return values[0].device if values else kwargs.get("device")


def _schema(schema: Schema, generator: int | None) -> Schema:
    namespace = derived_namespace(schema)
    others = [argument for place, argument in enumerate(schema.arguments) if place != generator]
    with_key = dataclasses.replace(
        schema,
        namespace=namespace,
        name=registry.unique(namespace, f"{schema.name}_keyed"),
        arguments=(Argument("key", Type("Tensor")), *others),
    )
    return derived_from(schema, "keyed", with_key)
