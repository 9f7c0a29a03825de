"""Mutated samples for every parser: only polyop's errors, in bounded time and memory.

The seed is POLYOP_FUZZ_SEED, else a random one. It is printed, and each failure names it.
"""

import os
import random
import resource

import pytest
from parsers import PARSERS

from polyop.core.limits import shown
from processor_time import seconds_within

SEED = int(os.environ.get("POLYOP_FUZZ_SEED") or random.SystemRandom().randrange(2**32))
SECONDS, MEBIBYTES = 10, 1024


def attack(parser, samples, folder):
    """Call a parser with mutated samples; return the number that it refused, and the longest time."""
    refused, slowest = 0, 0.0
    valid = parser.samples()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(samples):
        sample = parser.mutation(random.Random(f"{SEED} {parser.name} {number}"), valid)
        name = f"seed {SEED}, {parser.name}, sample {number}"
        with seconds_within(SECONDS, name) as spent:
            try:
                parser.function(sample, folder)
            except parser.allowed as problem:
                refused += 1
                str(problem).encode()
            except BaseException:
                print(f"{name}: {shown(sample)}")
                raise
        slowest = max(slowest, spent.seconds)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < MEBIBYTES, f"seed {SEED}, {parser.name}: the process grew by {grown} MiB"
    return refused, slowest


def report(parser, samples, outcome, record_property):
    refused, slowest = outcome
    text = f"{samples} samples, {refused} refused, slowest {slowest:.3f} s, seed {SEED}"
    record_property(parser.name, text)
    print(f"{parser.name}: {text}")


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_valid_samples_are_read(parser, tmp_path):
    if parser.mutation.__name__ != "of_members":
        for sample in parser.samples():
            parser.function(sample, tmp_path)


@pytest.mark.slow(4)
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_few_damaged_samples(parser, tmp_path, record_property):
    samples = max(3 * parser.share, 20)
    report(parser, samples, attack(parser, samples, tmp_path), record_property)


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_many_damaged_samples(parser, tmp_path, record_property):
    samples = 40 * parser.share
    report(parser, samples, attack(parser, samples, tmp_path), record_property)
