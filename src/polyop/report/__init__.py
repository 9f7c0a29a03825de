"""The report: one HTML file that shows an operator from its Python lines to its machine code.

Nothing is imported here: Jinja2 and Pygments are optional, and only a report needs them.
"""
