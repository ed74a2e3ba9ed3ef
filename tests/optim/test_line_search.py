"""Backtracking line search: the first step of the sequence that descends enough."""

from __future__ import annotations

import math

import pytest

from likely.core.errors import SpecError
from likely.core.spec import Spec, registered
from likely.optim import Armijo, LineSearch, armijo


@pytest.mark.parametrize("steepness", [0.1, 1.0, 7.0, 300.0])
@pytest.mark.parametrize(("shrink", "decrease"), [(0.5, 1e-4), (0.9, 0.4), (0.1, 0.1)])
def test_it_is_the_longest_step_of_the_sequence_that_descends_enough(steepness, shrink, decrease):
    def along(t: float) -> float:
        return steepness * (t - 0.4) ** 2

    value, derivative = along(0.0), -0.8 * steepness
    step = armijo(along, value, derivative, shrink, decrease, initial=3.0)
    assert along(step) <= value + decrease * step * derivative
    assert step / shrink > 3.0 or along(step / shrink) > value + decrease * step / shrink * derivative


def test_the_last_evaluation_is_at_the_step():
    seen: list[float] = []

    def along(t: float) -> float:
        seen.append(t)
        return (1 - 8 * t) ** 2

    assert armijo(along, 1.0, -16.0) == seen[-1] == 0.125
    assert seen == [1.0, 0.5, 0.25, 0.125]


@pytest.mark.parametrize("beyond", [math.nan, math.inf])
def test_trials_that_are_not_finite_are_too_far(beyond):
    assert armijo(lambda t: beyond if t > 0.3 else 1 - t, 1.0, -1.0) == 0.25


def test_it_gives_up_with_a_step_of_zero():
    assert armijo(lambda t: 1 + t, 1.0, -1.0, max_backtracks=5) == 0.0


def test_it_goes_downhill_only():
    with pytest.raises(SpecError, match="derivative must be negative: that along a descent direction; found 2"):
        armijo(lambda t: t, 0.0, 2.0)


@pytest.mark.parametrize("spec", [cls.example() for cls in registered(LineSearch).values()], ids=str)
def test_every_line_search_descends_and_is_a_value(spec):
    step = spec.search(lambda t: (t - 0.3) ** 2, 0.09, -0.6)
    assert (step - 0.3) ** 2 < 0.09
    assert LineSearch.parse(repr(spec)) == Spec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shrink": 1.0}, r"Armijo\(shrink=1.0\): shrink must be above 0 and below 1"),
        ({"decrease": 0}, "decrease must be above 0 and below 1"),
        ({"initial": -1.0}, "initial must be a positive number"),
        ({"max_backtracks": 0}, "max_backtracks must be an integer, 1 or more"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        Armijo(**arguments)
