"""The result of an audit of a wheel."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """``facts`` are labels and texts, ``notes`` are remarks, ``breaches`` are promises that do not hold."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
