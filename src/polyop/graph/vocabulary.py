"""The vocabulary of REG_OP headers, one row per word: macros, dtypes, named sets, attribute types."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..core.dtypes import DTYPES

TENSOR_MACROS: Final[dict[str, tuple[str, str]]] = {  # macro -> direction, kind
    "INPUT":           ("input", "required"),
    "OPTIONAL_INPUT":  ("input", "optional"),
    "DYNAMIC_INPUT":   ("input", "dynamic"),
    "OUTPUT":          ("output", "required"),
    "OPTIONAL_OUTPUT": ("output", "optional"),
    "DYNAMIC_OUTPUT":  ("output", "dynamic"),
}  # fmt: skip
ATTRIBUTE_MACROS: Final = ("ATTR", "REQUIRED_ATTR")
GRAPH_MACROS: Final = ("GRAPH", "DYNAMIC_GRAPH")
DATATYPE: Final = "DATATYPE"
END: Final = "OP_END_FACTORY_REG"
MACROS: Final = (*TENSOR_MACROS, *ATTRIBUTE_MACROS, *GRAPH_MACROS, DATATYPE, END)

# ge::DataType in the order of its numbers; 5 was never given to a type
_NUMBERED: Final = (
    "DT_FLOAT", "DT_FLOAT16", "DT_INT8", "DT_INT32", "DT_UINT8", "", "DT_INT16", "DT_UINT16", "DT_UINT32",
    "DT_INT64", "DT_UINT64", "DT_DOUBLE", "DT_BOOL", "DT_STRING", "DT_DUAL_SUB_INT8", "DT_DUAL_SUB_UINT8",
    "DT_COMPLEX64", "DT_COMPLEX128", "DT_QINT8", "DT_QINT16", "DT_QINT32", "DT_QUINT8", "DT_QUINT16",
    "DT_RESOURCE", "DT_STRING_REF", "DT_DUAL", "DT_VARIANT", "DT_BF16", "DT_UNDEFINED", "DT_INT4", "DT_UINT1",
    "DT_INT2", "DT_UINT2", "DT_COMPLEX32", "DT_HIFLOAT8", "DT_FLOAT8_E5M2", "DT_FLOAT8_E4M3FN",
    "DT_FLOAT8_E8M0", "DT_FLOAT6_E3M2", "DT_FLOAT6_E2M3", "DT_FLOAT4_E2M1", "DT_FLOAT4_E1M2", "DT_MAX",
)  # fmt: skip
DTYPE_NUMBERS: Final = {name: number for number, name in enumerate(_NUMBERED) if name}
DTYPE_ALIASES: Final = {  # spellings that headers use, and that the enumeration does not have
    "DT_FLOAT32": "DT_FLOAT", "DT_FLOAT64": "DT_DOUBLE", "DT_BFLOAT16": "DT_BF16",
}  # fmt: skip

DTYPE_OF_GE: Final = {row.name: _NUMBERED[row.cann] for row in DTYPES if row.cann >= 0}
"""polyop's name -> GE's; GE has no other dtypes of polyop's."""

NAMED_SETS: Final[dict[str, str]] = {  # TensorType::<name>() -> torchair's TensorType
    "QuantifiedType": "TT_QUANTIFIED",
    "OrdinaryType": "TT_ORDINARY",
    "BasicType": "TT_BASIC",
    "RealNumberType": "TT_REAL_NUMBER",
    "ComplexDataType": "TT_COMPLEX",
    "IntegerDataType": "TT_INTEGER",
    "SignedDataType": "TT_SIGNED",
    "UnsignedDataType": "TT_UNSIGNED",
    "FloatingDataType": "TT_FLOATING",
    "IndexNumberType": "TT_INDEX_NUMBER",
    "UnaryDataType": "TT_UNARY",
    "NumberType": "TT_NUMBER",
    "FLOAT": "TT_FLOAT",
    "ALL": "TT_ALL",
}


class AttributeType(NamedTuple):
    """One attribute type: the kind of its items, the depth of lists, and its names in torchair and Python.

    ``builder`` is torchair's ``attr.<builder>``, empty where it has none.
    """

    item: str
    lists: int
    builder: str
    annotation: str


ATTRIBUTE_TYPES: Final[dict[str, AttributeType]] = {
    #                            item      lists  builder          annotation
    "Int":             AttributeType("int",    0, "Int",           "int"),
    "Float":           AttributeType("float",  0, "Float",         "float"),
    "Bool":            AttributeType("bool",   0, "Bool",          "bool"),
    "String":          AttributeType("str",    0, "Str",           "str"),
    "AscendString":    AttributeType("str",    0, "Str",           "str"),
    "Type":            AttributeType("dtype",  0, "DataType",      "int"),
    "DataType":        AttributeType("dtype",  0, "DataType",      "int"),
    "ListInt":         AttributeType("int",    1, "ListInt",       "List[int]"),
    "ListFloat":       AttributeType("float",  1, "ListFloat",     "List[float]"),
    "ListBool":        AttributeType("bool",   1, "ListBool",      "List[bool]"),
    "ListString":      AttributeType("str",    1, "ListStr",       "List[str]"),
    "ListAscendString": AttributeType("str",   1, "ListStr",       "List[str]"),
    "ListType":        AttributeType("dtype",  1, "ListDataType",  "List[int]"),
    "ListDataType":    AttributeType("dtype",  1, "ListDataType",  "List[int]"),
    "ListListInt":     AttributeType("int",    2, "ListListInt",   "List[List[int]]"),
    "ListListFloat":   AttributeType("float",  2, "ListListFloat", "List[List[float]]"),
    "ListListBool":    AttributeType("bool",   2, "",              "List[List[bool]]"),
    "ListListString":  AttributeType("str",    2, "",              "List[List[str]]"),
    "Tensor":          AttributeType("opaque", 0, "",              "Any"),
    "ListTensor":      AttributeType("opaque", 1, "",              "List[Any]"),
    "Bytes":           AttributeType("opaque", 0, "",              "bytes"),
    "ListBytes":       AttributeType("opaque", 1, "",              "List[bytes]"),
    "NamedAttrs":      AttributeType("opaque", 0, "",              "Any"),
    "ListNamedAttrs":  AttributeType("opaque", 1, "",              "List[Any]"),
    "AnyValue":        AttributeType("opaque", 0, "",              "Any"),
}  # fmt: skip

CONSTANTS: Final[dict[str, int | float | tuple[int, ...]]] = {  # names that headers use in defaults
    "FLT_MAX": 3.4028234663852886e38,
    "FLT_MIN": 1.1754943508222875e-38,
    "FLT_EPSILON": 1.1920928955078125e-07,
    "INFINITY": float("inf"),
    "NAN": float("nan"),
    "INT_MAX": 2**31 - 1,
    "INT_MIN": -(2**31),
    "INT32_MAX": 2**31 - 1,
    "INT32_MIN": -(2**31),
    "INT64_MAX": 2**63 - 1,
    "INT64_MIN": -(2**63),
    "UNKNOWN_SHAPE": (-1,),
    "UNKNOWN_RANK": (-2,),
}

DEFORMED: Final = frozenset({
    "Const", "Data", "Constant", "Cast", "Variable", "VariableV2", "Placeholder", "PlaceholderV2",
    "PlaceholderWithDefault",
})  # fmt: skip
"""Operators that torchair builds itself, in a form that differs from their prototype."""
