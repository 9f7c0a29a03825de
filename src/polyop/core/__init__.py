"""What an operator is: schema, dtypes, specs, infer rules, information, registry, errors."""
