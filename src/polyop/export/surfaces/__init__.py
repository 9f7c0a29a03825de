"""The ways to call an exported library, each a function of the C++ text that adds it."""
