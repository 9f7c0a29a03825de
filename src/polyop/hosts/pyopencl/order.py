"""Order a call among the commands of OpenCL's queues, by barriers and events.

A call runs on one queue, behind all commands that were put into the queues of its arrays before, and behind
the arrays' events. Commands that come later, in any of these queues, run after it. Nothing waits on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyopencl as cl

_OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


class ordered:  # noqa: N801 - read as a word of `with`
    """Run a block's commands on ``queue`` in order with those around it.

    ``arrays`` are those that the commands use. Those in ``written``, which the block fills with what they
    write, get the event of the last command.
    """

    __slots__ = ("arrays", "before", "others", "queue", "written")

    def __init__(self, queue: Any, arrays: Sequence[Any], written: list[Any]) -> None:
        """Keep what the block uses."""
        self.queue = queue
        self.arrays = arrays
        self.written = written

    def __enter__(self) -> None:
        """Have the block's commands wait for those before them."""
        queue = self.queue
        self.others = list(dict.fromkeys(x.queue for x in self.arrays if x.queue not in (None, queue)))
        self.before = {id(x.events): list(x.events) for x in self.arrays if x.events}
        events = [e for one in self.before.values() for e in one if e.command_queue != queue]
        for other in dict.fromkeys([*self.others, *(e.command_queue for e in events if e.command_queue)]):
            if other in self.others:
                events.append(cl.enqueue_barrier(other))
            other.flush()  # else a queue may wait for commands that were never given to a device
        between(queue)
        if events:
            cl.enqueue_barrier(queue, wait_for=list(dict.fromkeys(events)))

    def __exit__(self, *problem: object) -> None:
        """Have the commands that come later wait for those of the block."""
        last = cl.enqueue_barrier(self.queue)
        self.queue.flush()
        for other in self.others:
            cl.enqueue_barrier(other, wait_for=[last])
        for array in self.written:
            array.events[:] = [e for e in array.events if e not in self.before.get(id(array.events), ())]
            array.add_event(last)


def between(queue: Any) -> None:
    """Have the next command wait for those before it, where a queue would let it overtake them."""
    if queue.properties & _OUT_OF_ORDER:
        cl.enqueue_barrier(queue)
