"""Programs with custom operators, run in each way that MindSpore's documents have, and in real MindSpore."""
