"""Export operators as one library that needs neither Python nor polyop.

collect.py            operators of polyop -> values of operator.py; refuses what cannot leave, by name
loops.py              loop kernels and their derived gradients -> kernels and sources
sources.py            kernels of C and C++ sources
shapes.py             the C++ that infers output shapes
generated_tables.py   the generated source: the tables that include/polyop/export/operator.h declares
header.py             plain C functions, and the header that declares them
cmake.py              the file by which find_package finds the library
surfaces/             other ways to call the library, one file each
manifest.py           what the library says of itself
names.py              refuses operators whose functions would have one name
c_names.py            the names of the parameters of a C function
literal.py            texts as literals and comments of C and C++
library.py            compile and link
"""

from .library import export

__all__ = ["export"]
