"""Which tests are too slow for every change: `make test` runs some of their cases, `make test-all` all.

Cases that are kept are spread evenly over a test's parameters. A test that costs much by itself, or a whole
file, carries ``@pytest.mark.exhaustive`` where it stands.
"""

from collections import defaultdict

import pytest

DERIVE = "tests/loops/derive/"
CASES_FOR_EVERY_CHANGE = {
    f"{DERIVE}test_checkpointing.py::test_every_length": 3,
    f"{DERIVE}test_checkpointing.py::test_the_same_gradient": 1,
    f"{DERIVE}test_checkpointing.py::test_all_that_has_a_derivative": 6,
    f"{DERIVE}test_checkpointing.py::test_segments_cost_no_threads_and_no_copies": 0,
    f"{DERIVE}test_checkpointing.py::test_both_orders_of_differences": 0,
    f"{DERIVE}test_checkpointing.py::test_jax_has_it_too": 0,
    f"{DERIVE}test_checkpointing.py::test_some_of_those_have_segments": 0,
    f"{DERIVE}test_passed.py::test_gradients": 20,
    f"{DERIVE}test_passed.py::test_compiled_by_torch": 2,
    f"{DERIVE}test_passed.py::test_batches": 4,
    f"{DERIVE}test_shifts.py::test_with_what_is_handed_over": 1,
    f"{DERIVE}test_shifts.py::test_gradients": 5,
    f"{DERIVE}test_saving.py::test_what_does_not_fit_is_computed_again": 1,
    f"{DERIVE}test_saving.py::test_the_largest_is_left_out_first": 0,
    f"{DERIVE}test_saving.py::test_sizes_that_are_symbols_hand_nothing_over": 0,
    f"{DERIVE}test_own_gradient.py::test_jax_differentiates_it_twice_and_forwards": 1,
    f"{DERIVE}test_own_gradient.py::test_torch_differentiates_it_twice_and_forwards": 1,
    f"{DERIVE}test_gradients_torch.py::test_gradcheck_and_gradgradcheck": 3,
    f"{DERIVE}test_gradients_torch.py::test_inside_torch_compile": 1,
    f"{DERIVE}test_gradients_jax.py::test_check_grads_and_jit": 3,
    f"{DERIVE}test_transforms_jax.py::test_derivatives_of_both_modes_to_the_second_order": 1,
    f"{DERIVE}test_reciprocals.py::test_against_differences": 10,
    f"{DERIVE}test_sound.py::test_what_is_derived_is_sound": 10,
    "tests/hosts/jax/test_transforms.py::test_beside_jax": 40,
    "tests/hosts/jax/test_transforms.py::test_elementwise_operands_broadcast_under_vmap": 2,
    "tests/hosts/jax/test_transforms.py::test_complex_gradients": 1,
    "tests/hosts/jax/test_bad_input.py::test_a_python_kernel_that_keeps_its_input": 2,
    "tests/hosts/jax/test_bad_input.py::test_a_python_kernel_that_keeps_what_it_writes": 1,
    "tests/hosts/jax/test_export.py::test_a_changed_operator_is_refused": 2,
    "tests/define/custom/test_custom_loops.py::test_in_a_mindspore_script": 6,
    "tests/bench/test_loop_compiled.py::test_compiled_equals_numpy": 12,
}
"""Test function -> how many of its cases run for every change."""


def mark(items):
    """Mark the cases of the table that are left out as exhaustive."""
    cases = defaultdict(list)
    for item in items:
        name = item.nodeid.split("[")[0]
        if name in CASES_FOR_EVERY_CHANGE:
            cases[name].append(item)
    for name, those in cases.items():
        count = min(CASES_FOR_EVERY_CHANGE[name], len(those))
        kept = {k * len(those) // count for k in range(count)}
        for k, item in enumerate(those):
            if k not in kept:
                item.add_marker(pytest.mark.exhaustive)
