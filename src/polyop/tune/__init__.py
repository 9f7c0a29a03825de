"""Search the schedule of a loop operator: the cost model ranks, measurements decide."""
