"""Export operators as one library that needs neither Python nor polyop.

collect.py            operators of polyop -> values of operator.py; refuses what cannot leave, by name
kernels.py            loop kernels with their derived gradients, C and C++ sources -> kernels and sources
shapes.py             the C++ that infers output shapes
generated_tables.py   the generated source: the tables that include/polyop/export/operator.h declares
header.py             plain C functions, the header that declares them, the file for find_package
surfaces/             other ways to call the library, one file each
manifest.py           what the library says of itself
names.py              names that clash are refused; the names of the parameters of a C function
literal.py            texts as literals and comments of C and C++
library.py            compile and link
"""

from .library import export

__all__ = ["export"]
