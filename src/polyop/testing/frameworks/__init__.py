"""The calls that checks make in each framework, one file each; it is imported only with its framework."""

from .framework import FRAMEWORKS, HOSTS, ON_REQUEST, Framework, absent, lacking, load

__all__ = ["FRAMEWORKS", "HOSTS", "ON_REQUEST", "Framework", "absent", "lacking", "load"]
