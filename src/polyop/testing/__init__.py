"""``check``: run on any operator the checks that polyop's own operators have to pass."""

from .check import check
from .report import CheckError, Report, Result

__all__ = ["CheckError", "Report", "Result", "check"]
