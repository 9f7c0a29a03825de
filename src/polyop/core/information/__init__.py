"""Operator information as MindSpore registers it: dtypes, formats, attributes and target of an operator."""
