"""The compiled library of a loop kernel: its options, how it is made, and those that packages ship."""
