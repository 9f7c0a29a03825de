import custom_ops_lib

from .add_custom import add_custom

__all__ = ["add_custom", "custom_ops_lib"]
