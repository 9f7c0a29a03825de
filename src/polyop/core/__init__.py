"""Values: schemas, dtypes, specs, infer rules, operator information, errors."""
