import functools
import gc
import threading

import pytest

from polyop.core.errors import FallbackWarning, InformationError
from polyop.core.information import registration
from polyop.core.information.information import Information
from polyop.core.information.registration import forget, register
from polyop.define.custom.reg_op import CustomRegOp, custom_info_register


def info(target="CPU", *attributes, name="f", inputs=1):
    builder = CustomRegOp(name).output(0, "y").target(target)
    for i in range(inputs):
        builder.input(i, f"x{i}")
    for attribute in attributes:
        builder.attr(attribute, "required", "float")
    return builder.get_op_info()


def read(*infos):
    return Information.from_any(infos, subject="demo", func_type="akg")


def function():
    return lambda x: x


def test_an_equal_registration_returns_the_first_one():
    f = function()
    first = register(f, read(info()), subject="demo")
    again = register(f, read(info(name="another_name")), subject="demo")
    assert again[0] is first[0]
    assert register(f, (), subject="demo") == ()


def test_a_different_one_for_the_same_target_names_both_places():
    f = function()
    register(f, read(info()), subject="demo")
    with pytest.raises(
        InformationError, match="demo: the registration information for CPU must be the one"
    ) as excinfo:
        register(f, read(info(inputs=2)), subject="demo")
    text = str(excinfo.value)
    assert "these parts differ: inputs" in text
    assert text.count(f"{__file__}:") == 2


def test_each_target_has_its_own():
    f = function()
    register(f, read(info("CPU")), subject="demo")
    both = register(f, read(info("CPU"), info("GPU", inputs=2)), subject="demo")
    assert [i.target for i in both] == ["CPU", "GPU"]
    assert register(f, read(info("GPU", inputs=2)), subject="demo") == both[1:]


def test_one_call_that_contradicts_itself_registers_nothing():
    f = function()
    with pytest.raises(InformationError, match="for CPU must be the one"):
        register(f, read(info("GPU"), info("CPU"), info("CPU", inputs=2)), subject="demo")
    assert register(f, read(info("GPU", inputs=3)), subject="demo")[0].inputs[2].name == "x2"


def test_attribute_names_are_those_of_the_other_targets():
    f = function()
    register(f, read(info("CPU", "alpha")), subject="demo")
    with pytest.raises(
        ValueError, match="attr names set in registration information must be the same as previous"
    ) as excinfo:
        register(f, read(info("GPU", "beta")), subject="demo")
    assert "['beta'] vs ['alpha']" in str(excinfo.value)


def test_each_operator_of_a_text_has_information_of_its_own():
    name = "folder/lib.so:registered_in_a_test"
    for inputs in (1, 2):
        assert len(register(name, read(info(inputs=inputs)), subject="demo")[0].inputs) == inputs
    with pytest.raises(InformationError, match="for CPU must be the one"):
        register(name, read(info(), info(inputs=2)), subject="demo")
    with pytest.raises(ValueError, match="attr names set in registration information must be the same"):
        register(name, read(info("CPU", "alpha"), info("GPU", "beta")), subject="demo")


def constant(value):
    return CustomRegOp("f").input(0, "x").output(0, "y").attr("axis", "required", "int", value=value).target("CPU").get_op_info()  # fmt: skip


@pytest.mark.parametrize("function", [lambda x: x, "lib.so:f"], ids=["function", "text"])
def test_a_kernel_with_another_constant_is_another_operator(function):
    registered = [register(function, read(constant(value)), subject="demo")[0] for value in (0, 1, 0)]
    assert [information.constants[0].value for information in registered] == [0, 1, 0]
    with pytest.raises(InformationError, match="for CPU must be the one registered already"):
        register(function, read(constant(0), constant(1)), subject="demo")


def test_a_decorated_function_is_the_function():
    f = function()
    register(custom_info_register(info())(f), read(info()), subject="demo")
    with pytest.raises(InformationError, match="for CPU must be the one"):
        register(custom_info_register(info(inputs=2))(f), read(info(inputs=2)), subject="demo")


def test_functions_that_wrap_another_have_their_own_information():
    def f(x):
        return x

    one, two = (functools.wraps(f)(lambda x, n=n: n * x) for n in (1, 2))
    register(one, read(info()), subject="demo")
    assert len(register(two, read(info(inputs=2)), subject="demo")[0].inputs) == 2


class Slotted:
    __slots__ = ()

    def __call__(self, x):
        return x


class Equal:
    def __eq__(self, other):
        return True

    __hash__ = None

    def __call__(self, x):
        return x

    def method(self, x):
        return x


def test_callables_are_told_apart_by_identity():
    one, two = Equal(), Equal()
    register(one, read(info()), subject="demo")
    register(two, read(info(inputs=2)), subject="demo")
    register(one.method, read(info(inputs=3)), subject="demo")
    with pytest.raises(InformationError):
        register(one.method, read(info()), subject="demo")


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "make", [function, Equal, lambda: functools.partial(max, 1)], ids=["lambda", "object", "partial"]
)
def test_a_collected_function_is_removed(make):
    gc.collect()
    before = len(registration._records)
    for count in range(1, 50):
        register(make(), read(info(inputs=count)), subject="demo")
    gc.collect()
    assert len(registration._records) == before


def test_a_function_without_weak_references_is_kept_alive():
    first = Slotted()
    register(first, read(info()), subject="demo")
    key = id(first)
    del first
    assert registration._records[key].owner is not None
    forget(registration._records[key].owner)


def test_threads_register_one_information():
    f, start, registered = function(), threading.Barrier(8), []

    def work():
        start.wait()
        registered.extend(register(f, read(info()), subject="demo"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registered) == 8
    assert len({id(i) for i in registered}) == 1


def test_the_first_stays_with_a_warning_where_mindspore_keeps_it():
    f = function()
    first = register(f, read(info()), subject="demo", keep_first=True)
    for _ in range(2):
        with pytest.warns(
            FallbackWarning, match="demo: the registration information for CPU at .* is ignored"
        ) as seen:
            assert register(f, read(info(inputs=2)), subject="demo", keep_first=True) == first
        assert "these parts differ: inputs" in str(seen[0].message)
        assert str(seen[0].message).count(f"{__file__}:") == 2
    constants = [register(f, read(i), subject="demo", keep_first=True) for i in (info("GPU"), info("GPU"))]
    assert constants[0] == constants[1]
