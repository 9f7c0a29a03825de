"""The compiled library of a loop kernel: options, the build, and the libraries that packages ship."""
