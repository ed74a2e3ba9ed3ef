"""Parts read from their source are the parts that Python registers, with the same arguments and defaults."""

from __future__ import annotations

import ast
from dataclasses import fields

import pytest

from likely.cli.catalogue import catalogue
from likely.core.spec import registered
from likely.kernels import Kernel
from likely.networks import Network
from likely.optim import Optimizer
from likely.priors import Prior

PARTS = catalogue()
OURS = {
    axis.axis: {name: spec for name, spec in registered(axis).items() if spec.__module__.startswith("likely.")}
    for axis in (Kernel, Network, Optimizer, Prior)
}


@pytest.mark.parametrize("axis", OURS)
def test_every_registered_part_is_read(axis):
    assert [part.name for part in PARTS[axis]] == sorted(OURS[axis])
    assert len(PARTS[axis]) > 3


@pytest.mark.parametrize("axis", OURS)
def test_arguments_and_plain_defaults_are_those_of_the_classes(axis):
    compared = 0
    for part in PARTS[axis]:
        spec = OURS[axis][part.name]
        own = {name: value for name, value in part.arguments.items() if value is not None}
        assert {field.name for field in fields(spec)} == set(part.arguments), part.name
        for name, text in own.items():
            try:
                value = ast.literal_eval(text)
            except ValueError:  # a name or a call, which only its module can read
                continue
            assert value == spec.__dataclass_fields__[name].default, (part.name, name)
            compared += 1
    assert compared >= len(PARTS[axis])


def test_parts_are_sorted_public_and_have_a_meaning():
    for parts in PARTS.values():
        names = [part.name for part in parts]
        assert names == sorted(names)
        assert not any(name.startswith("_") for name in names)
        assert all(part.meaning and "\n" not in part.meaning for part in parts)


def test_of_two_classes_with_one_name_a_base_is_the_one_imported():
    """`Learned` is what estimators are made of, and a noise schedule: the first is no part of an axis."""
    assert "Averaged" not in [part.name for part in catalogue()["noise_schedule"]]
    assert "Learned" in [part.name for part in catalogue()["noise_schedule"]]
