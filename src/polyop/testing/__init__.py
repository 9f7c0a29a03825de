"""What polyop runs on its own operators, for yours."""

from .check import check
from .report import CheckError, Report, Result

__all__ = ["CheckError", "Report", "Result", "check"]
