"""A report of ThreadSanitizer counts when the core makes one of the two accesses."""

import races

LINE = "=" * 18 + "\n"
REPORT = """WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 8 at 0x7b by thread T1:
    #0 operator delete(void*) tsan_new_delete.cpp:126 (libtsan.so+0x8)
    #1 {first} ({library}+0x1)
    #2 vectorcall /p/csrc/call.cc:190 (_core.cpython-311-x86_64-linux-gnu.so+0x3)

  Previous read of size 8 at 0x7b by thread T4:
    #0 other <null> (libjax_common.so+0x3)

  Location is heap block of size 8 at 0x7b allocated by thread T1:
    #0 operator new(unsigned long) tsan_new_delete.cpp:64 (libtsan.so+0x8)
    #1 {maker} (libjax_common.so+0x3)

"""
OURS, THEIRS = "_core.cpython-311-x86_64-linux-gnu.so", "libjax_common.so"


def report(first, library, maker="tsl::AsyncValue"):
    return LINE + REPORT.format(first=first, library=library, maker=maker) + LINE


def test_an_access_of_the_core_counts():
    assert len(list(races.races(report("push /p/csrc/key.cc:9", OURS)))) == 1


def test_accesses_of_a_framework_below_the_core_do_not_count():
    assert list(races.races(report("jax::Block", THEIRS))) == []


def test_a_call_frame_that_xla_hands_over_does_not():
    assert (
        list(races.races(report("call /p/csrc/hosts/xla.cc:133", OURS, "xla::ffi::CallFrame::FixUpAttrs")))
        == []
    )
