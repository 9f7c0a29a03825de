"""A call is in order with the commands around it, and waits for nothing on the CPU."""

import numpy as np
import pytest

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")

ADD = "__kernel void add(__global float *x, float a) { x[get_global_id(0)] += a; }"


@pytest.fixture
def add(context):
    """Return a function that adds a number to an array by a kernel of the user's own, without its events."""
    program = cl.Program(context, ADD).build(cache_dir=False)

    def call(queue, array, a, wait_for=None):
        return cl.Kernel(program, "add")(
            queue, (array.size,), None, array.base_data, np.float32(a), wait_for=wait_for
        )

    return call


def is_done(event):
    return event.command_execution_status == cl.command_execution_status.COMPLETE


@pytest.fixture
def held(context):
    """An event that the test sets: until then commands behind it do not run."""
    event = cl.UserEvent(context)
    yield event
    if not is_done(event):
        event.set_status(cl.command_execution_status.COMPLETE)


def release(held, *queues):
    held.set_status(cl.command_execution_status.COMPLETE)
    for queue in queues:
        queue.finish()  # also of the user's kernels, of which no array has the event


def test_a_call_runs_between_the_kernels_of_the_user(scaled, x, add, held):
    expected = x.get()
    add(x.queue, x, 1, wait_for=[held])
    y = scaled(x, 3.0)
    add(x.queue, y, 1)
    add(x.queue, x, 1)  # after the call has read it
    assert not any(map(is_done, y.events))  # it came back, and nothing has run
    release(held, x.queue)
    np.testing.assert_array_equal(y.get(), 3 * (expected + 1) + 1)
    np.testing.assert_array_equal(x.get(), expected + 2)


def test_a_call_waits_for_the_events_of_its_arrays(scaled, x, add, held, context):
    expected = x.get()
    other = cl.CommandQueue(context)
    x.add_event(add(other, x, 1, wait_for=[held]))
    y = scaled(x, 3.0)
    assert not any(map(is_done, y.events))
    release(held, x.queue)
    np.testing.assert_array_equal(y.get(), 3 * (expected + 1))


def test_a_rule_waits_for_the_copies_that_it_gets(squared, x, add, held, context):
    pull, expected = squared.vjp(x)[1], 2 * x.get() ** 2
    other = cl.CommandQueue(context)
    dout = cl_array.to_device(x.queue, np.asfortranarray(x.get() - 1))
    dout.add_event(add(other, dout, 1, wait_for=[held]))
    dx = pull(dout)[0]
    assert not any(map(is_done, dx.events))
    release(held, other, x.queue)
    np.testing.assert_array_equal(dx.get(), expected)


def test_copies_of_views_are_in_order(scale_, x, add, held):
    expected = x.get()
    add(x.queue, x, 1, wait_for=[held])
    scale_(x[::-1, 1::2], 3.0)
    add(x.queue, x, 1)
    assert not any(map(is_done, x.events[-1:]))
    release(held, x.queue)
    expected += 1
    expected[:, 1::2] *= 3
    np.testing.assert_array_equal(x.get(), expected + 1)


def test_an_array_of_another_queue(given, x, add, held, context):
    other = cl.CommandQueue(context)
    y = x.with_queue(other)
    expected = x.get()
    add(other, x, 1, wait_for=[held])  # no event of x or y tells of it
    z = given(x, y, a=3.0)
    add(other, x, 1)  # after the call has read it, though this is another queue
    assert z.queue == x.queue
    assert not any(map(is_done, z.events))
    release(held, other, x.queue)
    np.testing.assert_array_equal(z.get(), 3 * (expected + 1))
    np.testing.assert_array_equal(x.get(), expected + 2)


def test_many_calls_in_place_wait_for_nothing(scale_, x, held, add):
    expected = x.get()
    add(x.queue, x, 0, wait_for=[held])
    for _ in range(40):  # PyOpenCL itself waits for the first of 13 events
        scale_(x, -1.0)
    assert len(x.events) == 1
    release(held, x.queue)
    np.testing.assert_array_equal(x.get(), expected)


def test_no_command_copies_to_the_cpu(scaled, scale_, context):
    """Each command of a call is a kernel or a barrier, by the events of a queue that records them."""
    profiled = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    x = cl_array.to_device(profiled, np.ones((4, 4), np.float32))
    commands = []
    original = cl.enqueue_copy
    cl.enqueue_copy = lambda *given, **more: commands.append(given) or original(*given, **more)
    try:
        y = scaled(x[:, ::2])
        scale_(y, 2.0)
    finally:
        cl.enqueue_copy = original
    assert commands == []
    kinds = {event.command_type for event in (*x.events[1:], *y.events)}
    assert kinds == {cl.command_type.BARRIER}
    np.testing.assert_array_equal(y.get(), np.full((4, 2), 4))
