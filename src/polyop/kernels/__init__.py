"""Where a callable comes from: a library, a source, a Python function, a provider."""
