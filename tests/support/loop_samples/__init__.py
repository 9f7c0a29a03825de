"""Loop kernels for the tests: a table of programs, a generator of random ones, and ways to run them."""
