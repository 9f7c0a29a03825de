"""From a scheduled kernel to C: expressions, statements, loops, regions of threads, the program."""
