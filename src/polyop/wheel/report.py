"""What the audit of a wheel has found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """``facts`` as label and text, ``notes`` for the reader, ``breaches`` of what the wheel promises."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
