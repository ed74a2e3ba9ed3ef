"""Declared arrays and values: what fits is taken, what does not is refused by its name."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.declared import (
    AMOUNT,
    ANY,
    COUNT,
    COUNTS,
    COVARIANCE,
    FLAG,
    LIST,
    NOT_NEGATIVE,
    NUMBER,
    NUMBERS,
    POSITIVE,
    SIMPLEX,
    SYMMETRIC,
    TABLE,
    TEXTS,
    UNCHECKED,
    Array,
    check_arrays,
    check_values,
    match,
    maybe,
)
from likely.core.errors import ModelFileError


@pytest.mark.parametrize(
    ("axes", "shape", "known", "sizes"),
    [
        ("K D", (2, 3), {}, {"K": 2, "D": 3}),
        ("K K", (2, 2), {}, {"K": 2}),
        ("K K", (2, 3), {}, None),
        ("K", (2,), {"K": 3}, None),
        ("1 D", (1, 4), {}, {"D": 4}),
        ("1 D", (2, 4), {}, None),
        ("*", (7,), {}, {}),
        ("*", (), {}, None),
        ("N D …", (5, 2, 3, 3), {}, {"N": 5, "D": 2}),
        ("N D …", (5,), {}, None),
        ("K", (2, 1), {}, None),
    ],
)
def test_axes_match_shapes(axes, shape, known, sizes):
    assert match(axes.split(), shape, known) == sizes


def test_sizes_are_those_of_the_estimator_or_of_the_first_array():
    declared = {"first": Array("K"), "second": Array("K D"), "third": maybe(Array("D"))}
    arrays = {"first": np.ones(2), "second": np.ones((2, 3))}
    assert check_arrays(declared, arrays, {"D": 3}, "Model") == {"K": 2, "D": 3}
    with pytest.raises(
        ModelFileError, match=r"Model's second has shape \(2, 3\) in this file; it must be \(K=2, D=4\)"
    ):
        check_arrays(declared, arrays, {"D": 4}, "Model")
    with pytest.raises(ModelFileError, match=r"Model's third has shape \(2,\) in this file; it must be \(D=3\)"):
        check_arrays(declared, arrays | {"third": np.ones(2)}, {}, "Model")
    with pytest.raises(ModelFileError, match="does not hold what a fitted Model learned: first is missing"):
        check_arrays(declared, {"second": np.ones((2, 3))}, {}, "Model")
    with pytest.raises(ModelFileError, match="Model cannot have K='two'; it must be an integer from 0"):
        check_arrays(declared, arrays, {"K": "two"}, "Model")


def test_one_of_several_forms_will_do():
    declared = {"rows": Array("N"), "targets": Array("N | N T")}
    for targets in (np.ones(4), np.ones((4, 2))):
        check_arrays(declared, {"rows": np.ones(4), "targets": targets}, {}, "Model")
    with pytest.raises(ModelFileError, match=r"it must be \(N=4\) or \(N=4, T\)"):
        check_arrays(declared, {"rows": np.ones(4), "targets": np.ones((4, 2, 2))}, {}, "Model")


def test_dtypes_empty_axes_and_integers_out_of_range_are_refused():
    labels = {"centres": Array("K D"), "labels": Array("*", dtype=("int32", "int64"), below="K")}
    centres = np.ones((2, 1))
    check_arrays(labels, {"centres": centres, "labels": np.array([0, 1])}, {}, "Model")
    for bad, message in (
        (np.array([0, 2]), "labels has values from 0 to 2 in this file; it must be integers from 0 to 1"),
        (np.array([-1, 0]), "labels has values from -1 to 0 in this file; it must be integers from 0 to 1"),
        (np.array([0.0]), "labels holds float64 in this file; it must be int32 or int64"),
        (np.empty(0, int), r"labels is empty in this file: its shape is \(0,\)"),
    ):
        with pytest.raises(ModelFileError, match=message):
            check_arrays(labels, {"centres": centres, "labels": bad}, {}, "Model")
    check_arrays({"none": Array("*", empty=True)}, {"none": np.empty(0)}, {}, "Model")


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("allowed", "good", "bad"),
    [
        (ANY, [np.inf, -1.0], [np.nan]),
        (NOT_NEGATIVE, [0.0, 1.0], [-1e-300]),
        (NOT_NEGATIVE, [0.0], [np.inf]),
        (POSITIVE, [1e-300], [0.0]),
        (SIMPLEX, HALF, HALF + 1e-3),
        (SIMPLEX, [1.0, 0.0], [1.5, -0.5]),
        (SIMPLEX, [1.0], [np.nan]),
        (SYMMETRIC, [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [2.0, 0.0]]),
        (SYMMETRIC, [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]]),
        (COVARIANCE, [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (COVARIANCE, np.eye(2)[None] * 1e-12, [[1.0, 0.1], [0.0, 1.0]]),
        (COVARIANCE, np.zeros((1, 1)), [[np.inf]]),
    ],
)
def test_ranges(allowed, good, bad):
    assert allowed.holds(np.asarray(good))
    assert not allowed.holds(np.asarray(bad))
    assert UNCHECKED.holds(np.asarray(bad))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (COUNT, [0, 7], [-1, True, 1.0, "1", None, 2**70]),
        (NUMBER, [1, -2.5, float("inf")], [float("nan"), "1", True, None]),
        (AMOUNT, [0, 2.5], [-1, float("inf"), None]),
        (FLAG, [True, False], [0, None]),
        (COUNTS, [[], [1, 2]], [[-1], [0.5], (1,), None]),
        (NUMBERS, [[], [1, 2.5]], [["x"], None]),
        (TEXTS, [[], ["a"]], [[1], "a"]),
        (LIST, [[1, "a"]], [{}, None]),
        (TABLE, [{}], [[], None]),
    ],
)
def test_values_are_of_their_kind(kind, good, bad):
    for value in good:
        check_values({"value": kind}, {"value": value}, "Model")
    for value in bad:
        with pytest.raises(ModelFileError, match=f"Model's value is .* in this file; it must be {kind.words}"):
            check_values({"value": kind}, {"value": value}, "Model")
    check_values({"value": maybe(kind)}, {}, "Model")
    with pytest.raises(ModelFileError, match="value is missing"):
        check_values({"value": kind}, {}, "Model")
