"""``torch_npu.testing`` in rehearsal."""

from . import common_utils, testcase

__all__ = ["common_utils", "testcase"]
