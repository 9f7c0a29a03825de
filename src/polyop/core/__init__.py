"""Values that all of polyop shares: schemas, dtypes, specs, infer rules, operator information, errors."""

from .. import _core

_core.check_interpreter()  # this room is imported first, and NumPy after it
