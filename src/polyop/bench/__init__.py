"""Measure operators: times beside peers, the roofs of the machine, and the shapes of real runs.

Nothing is imported here, so that a process that records calls imports little.
"""
