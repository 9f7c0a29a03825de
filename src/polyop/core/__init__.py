"""Values that all of polyop shares: schemas, dtypes, specs, infer rules, operator information, errors."""
