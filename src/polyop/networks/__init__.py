"""Networks that move from one framework to another."""
