"""Order a call among the commands of OpenCL's queues, by barriers and events.

A call runs on one queue, behind all commands that were put into the queues of its arrays before, and behind
the arrays' events. Commands that come later, in any of these queues, run after it. Nothing waits on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyopencl as cl

_OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


@contextmanager
def ordered(queue: Any, arrays: Sequence[Any], changed: list[Any]) -> Iterator[None]:
    """Run the block's commands on ``queue`` in order with those around it.

    ``arrays`` are those that the commands use. Those in ``changed``, which the block fills with what they
    write, get the event of the last command.
    """
    others = list(dict.fromkeys(x.queue for x in arrays if x.queue not in (None, queue)))
    before = {id(x.events): list(x.events) for x in arrays}
    events = [e for one in before.values() for e in one if e.command_queue != queue]
    for other in dict.fromkeys([*others, *(e.command_queue for e in events if e.command_queue is not None)]):
        if other in others:
            events.append(cl.enqueue_barrier(other))
        other.flush()  # else a queue may wait for commands that were never given to a device
    if queue.properties & _OUT_OF_ORDER:
        cl.enqueue_barrier(queue)
    if events:
        cl.enqueue_barrier(queue, wait_for=list(dict.fromkeys(events)))
    try:
        yield
    finally:
        last = cl.enqueue_barrier(queue)
        queue.flush()
        for other in others:
            cl.enqueue_barrier(other, wait_for=[last])
        for array in changed:
            array.events[:] = [e for e in array.events if e not in before.get(id(array.events), ())]
            array.add_event(last)


def between(queue: Any) -> None:
    """Have the next command wait for those before it, where a queue would let it overtake them."""
    if queue.properties & _OUT_OF_ORDER:
        cl.enqueue_barrier(queue)
