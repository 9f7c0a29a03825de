"""isl's sets of the instances of statements along one dimension, in the whole kernel and in a slice.

Parameters of a slice, beside the kernel's own::

    a_, b_     the slice requested: 0 <= a_ < b_ <= size
    s_, m_     where its tensors start, and their size: the slice and its halo, inside 0 .. size

An instance of the whole and one of a slice correspond if their coordinates differ by s_.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..analysis import affine
from ..analysis.affine import Linear
from ..analysis.polyhedra import Access, Model
from .dimension import Dimension
from .sites import Site

SLICE = ("a_", "b_", "s_", "m_")


class DimensionSets:
    """Builds the sets for one kernel and one dimension."""

    def __init__(self, model: Model, dimension: Dimension) -> None:
        assert dimension.size is not None
        self.model = model
        self.size = affine.word(affine.name_of(dimension.size))
        words = [affine.word(name) for name in model.parameters]
        self.parameters = [*words, *([] if self.size in words else [self.size])]
        self._signs = [f"{affine.word(n)} >= 0" for n in model.parameters if "." in n]

    def offset_range(
        self, site: Site, access: Access, coordinate: str
    ) -> tuple[Linear | None, Linear | None]:
        """Return the least and the largest distance of an access from its statement's coordinate.

        None where there is none, or where it depends on the dimension's size.
        """
        dims = ", ".join(map(affine.word, site.leaf.vars))
        constraints = [
            *site.leaf.constraints,
            *access.guards,
            *self._signs,
            f"o = {coordinate} - ({site.coordinate})",
        ]
        text = f"[{', '.join(self.parameters)}] -> {{ [o] : exists {dims} : {' and '.join(constraints)} }}"
        text = text if dims else text.replace("exists  :", "")
        isl = self.model.isl
        values = isl.Set.read_from_str(self.model.session.context, text)
        number = values.find_dim_by_name(isl.dim_type.param, self.size)
        values = values.project_out(isl.dim_type.param, number, 1)
        if values.is_empty():
            return {}, {}
        bounds: list[Linear | None] = []
        for bounded, extreme in (
            (values.dim_has_lower_bound, values.dim_min),
            (values.dim_has_upper_bound, values.dim_max),
        ):
            forms = [] if not bounded(isl.dim_type.set, 0) else _forms(extreme(0), self.model)
            bounds.append(forms[0] if len(forms) == 1 else None)
        return bounds[0], bounds[1]

    def whole(self, site: Site, more: Sequence[str]) -> Any:
        """Return the instances of a statement in the whole kernel, with further constraints."""
        return self.instances(site, [*site.leaf.constraints, *more])

    def sliced(self, site: Site, more: Sequence[str]) -> Any:
        """Return the instances of a statement in a slice, each as the instance of the whole it stands for."""
        return self.instances(site, [self.in_slice(site, text) for text in (*site.leaf.constraints, *more)])

    def in_slice(self, site: Site, text: str) -> str:
        """Return isl's text about an instance of the whole as one about the instance of the slice."""
        text = re.sub(rf"\b{self.size}\b", "m_", text)
        if site.loop is None:
            return text
        variable = affine.word(site.loop)
        shifted = f"({variable} - s_)" if site.sign > 0 else f"({variable} + m_ - {self.size} + s_)"
        return re.sub(rf"\b{variable}\b", shifted, text)

    def instances(self, site: Site, constraints: Sequence[str]) -> Any:
        """Return the isl set of all iterations of a statement's loops with these constraints."""
        head = f"I[{', '.join(map(affine.word, site.leaf.vars))}]"
        rows = " and ".join([*self._signs, *constraints]) or "0 = 0"
        text = f"[{', '.join([*self.parameters, *SLICE])}] -> {{ {head} : {rows} }}"
        return self.model.isl.Set.read_from_str(self.model.session.context, text)

    def slices(self, before: str, after: str) -> list[str]:
        """Return the constraints of all slices with a halo of these widths."""
        start = f"((s_ = 0 and a_ <= {before}) or (s_ = a_ - {before} and a_ >= {before}))"
        end = (f"((m_ = {self.size} - s_ and b_ + {after} >= {self.size}) or "
               f"(m_ = b_ + {after} - s_ and b_ + {after} <= {self.size}))")  # fmt: skip
        return [f"0 <= a_ and a_ < b_ and b_ <= {self.size}", f"{before} >= 0 and {after} >= 0", start, end]


def _forms(value: Any, model: Model) -> list[Linear | None]:
    """Return the different pieces of a piecewise affine value."""
    forms: list[Linear | None] = []
    value.foreach_piece(lambda _, piece: forms.append(_linear(piece, model)))
    return [form for k, form in enumerate(forms) if form not in forms[:k]]


def _linear(affine_value: Any, model: Model) -> Linear | None:
    """Return an isl affine expression of parameters as a linear form; None if it has divisions."""
    kind = model.isl.dim_type
    if affine_value.dim(kind.div) or not affine_value.get_denominator_val().is_one():
        return None
    words = {affine.word(name): name for name in model.parameters}
    form: Linear = {"": int(affine_value.get_constant_val().to_python())}
    for k in range(affine_value.dim(kind.param)):
        coefficient = int(affine_value.get_coefficient_val(kind.param, k).to_python())
        if coefficient:
            name = words.get(affine_value.get_dim_name(kind.param, k))
            if name is None:
                return None
            form[name] = coefficient
    return {name: c for name, c in form.items() if c}


def isl_text(form: Linear) -> str:
    """Return a linear form in isl's syntax."""
    terms = [f"{c}*{affine.word(name)}" if name else str(c) for name, c in form.items() if c]
    return f"({' + '.join(terms)})" if terms else "0"
