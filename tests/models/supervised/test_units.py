"""Units of inputs and targets: what is standardised, what is refused, and what is warned of."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch

from likely import Regressor
from likely.core.errors import ApproximationWarning, DataError, ModelFileError
from likely.models.supervised.build import Plan
from likely.models.supervised.units import check_restored, check_units, input_units
from likely.networks.layers.standardise import Statistics

X = torch.tensor([[1.0, 100.0], [2.0, 300.0], [6.0, 500.0]], dtype=torch.float64)


def plan(**changes):
    given = {"in_shape": (2,), "out_features": 1, "positions": (), "flatten": False, "shared": 0, "linear": True}
    return Plan(**given | changes)


def of(centre, scale):
    return Statistics(torch.tensor([centre], dtype=torch.float64), torch.tensor([scale], dtype=torch.float64), None)


def test_units_are_the_mean_and_deviation_of_weighted_rows():
    weight = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    units = input_units(plan(columns=(2,)), X, weight)
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X.numpy() - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(units.centre.ravel(), mean, rtol=1e-6)
    np.testing.assert_allclose(units.scale.ravel(), deviation, rtol=1e-6)


def test_a_plan_without_columns_takes_inputs_as_they_are():
    assert input_units(plan(), X, None) is None


def test_rows_that_are_flattened_have_a_unit_per_entry():
    images = torch.randn(9, 2, 3, dtype=torch.float64)
    units = input_units(plan(in_shape=(2, 3), flatten=True, columns=(6,)), images, None)
    np.testing.assert_allclose(units.centre.ravel(), images.flatten(1).mean(0), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("size", "dtype"), [(1e-14, torch.float32), (1e16, torch.float32), (1e-310, torch.float64)])
def test_targets_beyond_the_range_are_refused(size, dtype):
    unit = torch.tensor([1.0, size], dtype=torch.float64)
    words = f"y varies by about {size:.1g}, beyond what {str(dtype).removeprefix('torch.')} training can hold"
    with pytest.raises(DataError, match=re.escape(words)):
        check_units(None, unit, dtype)
    check_units(None, torch.tensor([1e-12, 1e15], dtype=torch.float64), dtype)


def test_a_column_that_rounding_would_hide_is_named():
    with pytest.warns(ApproximationWarning, match=r"Column 1 of X varies by about 1 around 1e\+07.*float32"):
        check_units(of([0.0, 1e7], [1.0, 1.0]), None, torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_units(of([0.0, 1e7], [1.0, 1.0]), None, torch.float64)
        check_units(of([0.0, 1e3], [1.0, 1.0]), None, torch.float32)
        check_units(None, None, torch.float32)


def test_targets_that_rounding_would_hide_are_named():
    rows = torch.randn(50, 2, dtype=torch.float64)
    with pytest.warns(ApproximationWarning, match=r"^y varies by about .* around 1e\+06, which float32"):
        check_units(None, None, torch.float32, 1e6 + 0.1 * rows[:, 0])
    with pytest.warns(ApproximationWarning, match=r"^Column 1 of y varies by about .* around 1e\+09"):
        check_units(None, None, torch.float32, rows + torch.tensor([0.0, 1e9]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_units(None, None, torch.float64, 1e6 + 0.1 * rows)
        check_units(None, None, torch.float32, rows.exp() * 1e6)
        check_units(None, None, torch.float32, torch.full((5,), 1e9, dtype=torch.float64))
        check_units(None, None, torch.float32, torch.tensor([1e9], dtype=torch.float64))


def test_columns_that_a_cast_would_lose_are_named():
    with pytest.raises(DataError, match=r"Column 1 of X has values of about 1e\+300 beyond what float32 training"):
        check_units(of([0.0, 1e300], [1.0, 1.0]), None, torch.float32)
    with pytest.raises(DataError, match=r"Column 0 of X has values of about 1e\+38"):
        check_units(of([0.0, 0.0], [1e38, 1.0]), None, torch.float32)
    with pytest.warns(ApproximationWarning, match=r"Column 1 of X varies by 1e-30 or less"):
        check_units(of([0.0, 0.0], [1.0, 1e-30]), None, torch.float32)
    check_units(of([0.0, 1e300], [1e-20, 1e300]), None, torch.float64)


def test_a_file_has_units_above_zero():
    check_restored({})
    check_restored({"inputs.scale": torch.ones(1, 3)})
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(ModelFileError, match="units of the inputs that are not above 0"):
            check_restored({"inputs.scale": torch.tensor([[1.0, wrong]])})


def test_a_fit_does_not_depend_on_whether_columns_are_in_kilo_or_milli():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 2))
    y = rows @ [1.0, -2.0] + 0.1 * rng.normal(size=20)
    units, shift = np.array([1e3, 1e-3]), np.array([5e3, -1e-3])
    plain, moved = Regressor().fit(rows, y), Regressor().fit(rows * units + shift, y)
    np.testing.assert_allclose(moved.predict(rows * units + shift), plain.predict(rows), rtol=1e-7, atol=1e-7)
