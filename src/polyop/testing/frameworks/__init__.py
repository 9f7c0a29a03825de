"""The calls that checks make in each framework, one file each; it is imported only with its framework."""

from .framework import FRAMEWORKS, ON_REQUEST, Framework, absent, lacking, load

__all__ = ["FRAMEWORKS", "ON_REQUEST", "Framework", "absent", "lacking", "load"]
