"""Calls that run on polyop.mindspore and on MindSpore, and the comparison of what comes out."""
