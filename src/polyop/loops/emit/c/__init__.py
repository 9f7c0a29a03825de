"""C text for CPUs: loops, vectors, tiles, threads."""
