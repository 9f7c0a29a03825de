"""The C++ of surfaces that have one function, or a few, for each operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..operator import ExportedOperator


def functions(
    header: str,
    function: str,
    operators: Sequence[ExportedOperator],
    refused: Callable[[ExportedOperator], str | None],
) -> str:
    """Return the C++ that includes a header of ``polyop/export`` and has a function for each operator.

    ``function`` is a text with ``{short_name}``, ``{c_name}``, and ``{number}``: ``kOperators`` has the
    operators in this order. One that is ``refused`` has none.
    """
    texts = [
        function.format(short_name=operator.short_name, c_name=operator.c_name, number=number)
        for number, operator in enumerate(operators)
        if refused(operator) is None
    ]
    return f'#include "polyop/export/{header}"\n\nusing namespace polyop;\n{"".join(texts)}'
