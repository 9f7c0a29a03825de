"""The passes that derive a kernel from a kernel, as tables; see runner.py.

Every pass but one keeps what the kernel means. In each table that one makes the derived kernel: ``reverse``,
``return_temporaries``, ``forward_mode`` or ``batch_loop``. The last pass settles which of its buffers start
as zeros: until then any element counts as zero that is read before it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..passes.array_privatisation import array_privatisation
from ..passes.assume_sizes import assume_sizes
from ..passes.dead_statements import dead_statements
from ..passes.if_conversion import if_conversion
from ..passes.initialisation import initialisation
from ..passes.inline_scalars import inline_scalars
from ..passes.propagate_indices import propagate_indices
from ..passes.rescaled_sums import rescaled_sums_of_derivations, rescaled_sums_of_forwards
from ..passes.residue_classes import residue_classes
from ..passes.scatter_to_gather import scatter_to_gather
from ..passes.unroll import unroll
from ..runner import Pass
from .batch_loop import Batch, batch_loop
from .checkpointing import checkpointing
from .copy_propagation import copy_propagation
from .dead_inputs import dead_inputs
from .dead_zeros import dead_zeros
from .derivation import Derivation
from .first_stores import first_stores, first_stores_of_scalars
from .forward_mode import forward_mode
from .forward_substitution import forward_substitution
from .inline_adjoints import inline_adjoints
from .keep_argmax_operands import keep_argmax_operands
from .loop_fission import loop_fission
from .return_temporaries import initialisation_of_saved, return_temporaries
from .reverse import reverse
from .save_winners import save_winners
from .scalars_to_memory import scalars_to_memory
from .split_clamped_stores import split_clamped_stores
from .stop_shift_gradients import stop_shift_gradients
from .to_be_recorded import to_be_recorded

Passes = tuple[Pass[Derivation], ...]

NORMAL_FORM: Passes = (
    Pass(propagate_indices, "Indices become affine expressions of loops and sizes."),
    Pass(unroll, "A short inner loop is written out: its iterations are analysed one by one."),
    Pass(if_conversion, "What both arms of a condition store is stored in any case, once."),
    Pass(inline_scalars, "A statement with the whole value has a gradient without an adjoint of the scalar."),
    Pass(residue_classes, "A sum over multiples of a step does not look at the other numbers."),
    Pass(assume_sizes, "Proofs may rely on sizes that the call has checked.", needed=True),
    Pass(
        rescaled_sums_of_derivations,
        "Sums that a running maximum rescales become plain sums: nothing of an iteration is taped.",
    ),
    Pass(initialisation, "A buffer that may be read before it is written starts as zeros.", needed=True),
    Pass(array_privatisation, "A temporary belongs to the iterations that use it alone.", needed=True),
    Pass(scalars_to_memory, "Derivations know one kind of value: an element of a buffer.", needed=True),
)
"""The form that kernels are differentiated in."""

STOP: Passes = (
    Pass(stop_shift_gradients, "A maximum that no output depends on, as softmax's, has the gradient 0."),
)
"""What the gradient does not need of the forward."""

TO_RECORD: Passes = (
    Pass(keep_argmax_operands, "The winner of a maximum is found again by equality.", needed=True),
    Pass(to_be_recorded, "Each value that the gradient reads is given, recomputed or taped.", needed=True),
)
"""What the gradient needs of the forward."""

RECORD: Passes = (*STOP, *TO_RECORD)

REVERSE: Passes = (
    Pass(reverse, "The loops run backwards and propagate adjoints: this is the gradient.", needed=True),
    Pass(dead_zeros, "A zero that is overwritten before it is read costs a pass over memory."),
    Pass(copy_propagation, "An output's gradient that nothing is added to is read where it is."),
    Pass(first_stores_of_scalars, "Forward substitution needs one store of each scalar."),
    Pass(forward_substitution, "A scalar that only passes a value on would keep two loops apart."),
    Pass(loop_fission, "A contraction, or a sum of shifted elements, needs a nest of its own."),
    Pass(split_clamped_stores, "A clamped index is a shift, but at the borders."),
    Pass(scatter_to_gather, "Each element collects what is added to it: iterations share nothing."),
    Pass(first_stores, "A first addition that is a store needs no zero before it."),
    Pass(inline_adjoints, "A cheap adjoint goes into its only reader: one pass over memory less."),
    Pass(dead_inputs, "Frameworks need not keep what the gradient does not read.", needed=True),
    Pass(initialisation, "A buffer that may be read before it is written starts as zeros.", needed=True),
)
"""The gradient, and its clean-up."""

ADJOINT: Passes = (*NORMAL_FORM, *RECORD, *REVERSE)
CHECKPOINTED: Passes = (
    *NORMAL_FORM,
    *RECORD,
    # the copies into and out of a segment share their loops' names until reverse gives each its own
    Pass(checkpointing, "A long recurrence is taped by segments.", needed=True, unique_loops=False),
    Pass(to_be_recorded, "In segments other values are taped.", needed=True, unique_loops=False),
    *REVERSE,
)
_SUMS: Pass[Derivation] = Pass(
    rescaled_sums_of_forwards,
    "Sums that a running maximum rescales become plain sums, NaN where the author's are.",
)
SAVING: Passes = (
    *(_SUMS if one.run is rescaled_sums_of_derivations else one for one in NORMAL_FORM),
    *STOP,
    Pass(save_winners, "A gradient that knows the winner of a maximum need not search for it."),
    *TO_RECORD,
    Pass(return_temporaries, "What the forward returns the gradient need not recompute.", needed=True),
    Pass(initialisation_of_saved, "A temporary that is an output has elements never written.", needed=True),
)
TANGENT: Passes = (
    *NORMAL_FORM,
    Pass(forward_mode, "The tangent of each statement runs before it: this is forward mode.", needed=True),
    Pass(dead_statements, "Values that no tangent needs are not computed."),
    Pass(dead_inputs, "Frameworks need not pass what the tangent does not read.", needed=True),
    Pass(initialisation, "A buffer that may be read before it is written starts as zeros.", needed=True),
)
BATCHED: tuple[Pass[Batch], ...] = (
    Pass(batch_loop, "Samples are independent: one more parallel loop around the kernel.", needed=True),
)

PIPELINES: Mapping[str, tuple[Pass[Any], ...]] = {
    "backward": ADJOINT,
    "checkpointed": CHECKPOINTED,
    "saving": SAVING,
    "tangent": TANGENT,
    "batched": BATCHED,
}
"""By derived form, its passes in order. The names are public: ``polyop explain --derived backward``."""
