"""``torch_npu.testing`` in rehearsal."""
