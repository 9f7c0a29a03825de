"""The converter for torchair, written by hand; needs torch-npu."""

import pathlib

from polyop.graph.torchair import dtype_promote, load_header, register_fx_node_ge_converter

from . import custom_ops_lib

AddCustom = load_header(str(pathlib.Path(__file__).with_name("custom_reg_op.h")))["AddCustom"]


@register_fx_node_ge_converter(custom_ops_lib.add_custom)
def convert(input1, input2, out=None, meta_outputs=None):
    input1, input2 = dtype_promote(input1, input2, target_dtype=meta_outputs.dtype)
    return AddCustom(input1, input2)
