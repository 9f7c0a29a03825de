# __init__.py
import custom_ops_lib
from .add_custom import add_custom
