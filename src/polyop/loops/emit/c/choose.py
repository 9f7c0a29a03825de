"""The entry of a library that holds a kernel for several instruction sets."""

from __future__ import annotations

from collections.abc import Sequence

from ...targets.table import TARGETS

_SIGNATURE = "int {}(int n, void** p, int* d, int64_t** s, const char** t, void* stream, void* extra)"


def choosing(function: str, names: Sequence[str]) -> str:
    """Return the C of a function that calls the best of ``function__<name>`` that the processor has.

    >>> print(choosing("f", ["avx2", "baseline"]).splitlines()[1])
    int f__avx2(int n, void** p, int* d, int64_t** s, const char** t, void* stream, void* extra);
    """
    lines = ["#include <stdint.h>"]
    lines += [_SIGNATURE.format(f"{function}__{name}") + ";" for name in names]
    lines.append(_SIGNATURE.format(function) + " {")
    for name in names[:-1]:
        test = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in TARGETS[name].supports)
        lines.append(f"  if ({test}) return {function}__{name}(n, p, d, s, t, stream, extra);")
    lines += [f"  return {function}__{names[-1]}(n, p, d, s, t, stream, extra);", "}", ""]
    return "\n".join(lines)
