"""``torch_npu.utils`` in rehearsal."""
