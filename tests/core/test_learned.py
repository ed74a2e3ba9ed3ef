"""Estimators that list what they learn; the door for missing values; models found by name when a file is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from likely.core.declared import COUNT, LIST, NOT_NEGATIVE, Array, Arrays, Values, maybe
from likely.core.errors import DataError, ModelFileError
from likely.core.estimator import load_estimator
from likely.core.files import read_file, write_file
from likely.core.learned import Learned
from likely.core.validation import as_rows, check_finite


class Spread(Learned):
    """Mean and range of each column, for these tests."""

    _arrays: ClassVar[Arrays] = {"mean_": Array("D …"), "range_": maybe(Array("D", NOT_NEGATIVE))}
    _values: ClassVar[Values] = {"count_": COUNT, "words_": LIST}

    def __init__(self, wide=True):
        self.wide = wide

    def fit(self, X, y=None):
        self._forget()
        x = as_rows(self, X, reset=True, missing=True).double().numpy()
        if len(x) < 2:
            raise DataError("too few rows")
        self.mean_ = np.nanmean(x, 0)
        self.range_ = np.nanmax(x, 0) - np.nanmin(x, 0) if self.wide else None
        self.count_, self.words_ = len(x), ["a", {"b": 1.5}]
        return self


X = np.arange(6.0).reshape(3, 2)


# --- Learned ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("table", [np.array, lambda a: pd.DataFrame(a, columns=["u", "v"])])
def test_what_was_learned_comes_back_from_a_file(wide, table, tmp_path):
    model = Spread(wide).fit(table(X))
    model.save(tmp_path / "spread.likely")
    again = load_estimator(tmp_path / "spread.likely")
    assert type(again) is Spread
    assert again.wide == wide
    np.testing.assert_array_equal(again.mean_, model.mean_)
    assert (again.range_ is None) == (not wide)
    assert (again.count_, again.words_, again.n_features_in_) == (3, ["a", {"b": 1.5}], 2)
    assert getattr(again, "feature_names_in_", np.array([])).tolist() == (["u", "v"] if table is not np.array else [])
    assert again._state()[0] == model._state()[0]


def test_it_is_fitted_when_the_first_of_its_attributes_is_there():
    model = Spread()
    with pytest.raises(NotFittedError):
        model._check_fitted()
    with pytest.raises(NotFittedError):
        model.save("nowhere.likely")
    model.fit(X)._check_fitted()


def test_a_fit_that_fails_leaves_nothing_behind():
    model = Spread().fit(X)
    with pytest.raises(DataError, match="too few rows"):
        model.fit(X[:1])
    assert not {"mean_", "range_", "count_", "words_"} & set(vars(model))
    with pytest.raises(NotFittedError):
        model._check_fitted()


def test_arrays_need_not_be_contiguous(tmp_path):
    model = Spread().fit(X)
    model.mean_ = np.arange(12.0).reshape(3, 4).T[::2]  # (2, 3)
    model.save(tmp_path / "spread.likely")
    np.testing.assert_array_equal(load_estimator(tmp_path / "spread.likely").mean_, model.mean_)


def changed(path, change):
    header, tensors = read_file(path)
    header = json.loads(json.dumps(header))
    change(header, tensors)
    write_file(path, header, tensors)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, tensors: header["learned"].update(strange=1), r"does not fit Spread: it has \['strange'\]"),
        (lambda header, tensors: tensors.update(other=torch.ones(1)), r"does not fit Spread: it has \['other'\]"),
        (lambda header, tensors: tensors.pop("mean_"), "does not hold what a fitted Spread learned: mean_ is missing"),
        (
            lambda header, tensors: tensors.update(range_=torch.ones(3).double()),
            r"Spread's range_ has shape \(3,\) in this file; it must be \(D=2\)",
        ),
        (
            lambda header, tensors: tensors.update(range_=-torch.ones(2).double()),
            "Spread's range_ has values from -1 to -1 in this file; it must be finite and not negative",
        ),
        (
            lambda header, tensors: tensors.update(mean_=tensors["mean_"] / 0),
            "Spread's mean_ has values that are not finite in this file; it must be finite",
        ),
        (
            lambda header, tensors: tensors.update(mean_=torch.ones(2)),
            "Spread's mean_ holds float32 in this file; it must be float64",
        ),
        (lambda header, tensors: header["learned"].update(count_=-1), "Spread's count_ is -1 in this file; it must be"),
        (lambda header, tensors: header["learned"].update(n_features_in_=0), "n_features_in_=0; it must be an integer"),
        (
            lambda header, tensors: header["learned"].update(feature_names_in_=["u"]),
            "feature_names_in_ that are not the names of 2 columns",
        ),
        (lambda header, tensors: header.update(model="Nobody"), "holds a model 'Nobody', which is not known here"),
    ],
)
def test_files_that_do_not_fit_are_refused(change, message, tmp_path):
    Spread().fit(X).save(tmp_path / "spread.likely")
    changed(tmp_path / "spread.likely", change)
    with pytest.raises(ModelFileError, match=message):
        load_estimator(tmp_path / "spread.likely")


# --- find -------------------------------------------------------------------------------------------------------
def test_a_model_that_is_not_known_yet_is_looked_for_by_name(tmp_path):
    Spread().fit(X).save(tmp_path / "spread.likely")
    asked = []
    load_estimator(tmp_path / "spread.likely", find=asked.append)
    assert asked == []  # it is known already
    changed(tmp_path / "spread.likely", lambda header, tensors: header.update(model="Nobody"))
    with pytest.raises(ModelFileError, match="holds a model 'Nobody'"):
        load_estimator(tmp_path / "spread.likely", find=asked.append)
    assert asked == ["Nobody"]


def test_models_inside_a_model_are_looked_for_too(tmp_path):
    Spread().fit(X).save(tmp_path / "spread.likely")
    inner = {"model": "Inside", "params": {"deeper": {"model": "Deep", "params": {}}}}
    changed(tmp_path / "spread.likely", lambda header, tensors: header["params"].update(wide=inner))
    asked = []
    with pytest.raises(ModelFileError):
        load_estimator(tmp_path / "spread.likely", find=asked.append)
    assert asked == ["Inside", "Deep"]


def test_a_fresh_process_loads_a_model_whose_file_it_has_not_imported(tmp_path):
    from likely import PCA

    rows = np.random.default_rng(0).normal(size=(20, 3))
    model = PCA(2).fit(rows)
    model.save(tmp_path / "pca.likely")
    np.save(tmp_path / "rows.npy", rows)
    code = (
        "import sys, numpy as np, likely; before = 'likely.models.linear_gaussian.pca' in sys.modules; "
        "model = likely.load(sys.argv[1] + '/pca.likely'); rows = np.load(sys.argv[1] + '/rows.npy'); "
        "print(before, 'likely.models.hopfield' in sys.modules, model.transform(rows)[0, 0] == float(sys.argv[2]))"
    )
    arguments = [str(tmp_path), repr(float(model.transform(rows)[0, 0]))]
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False", "True"]


# --- missing values at the door ---------------------------------------------------------------------------------
HOLES = np.array([[1.0, np.nan], [np.nan, 4.0]])


@pytest.mark.parametrize(
    "rows",
    [
        HOLES,
        HOLES.tolist(),
        HOLES.astype(np.float32),
        torch.from_numpy(HOLES),
        pd.DataFrame(HOLES),
        HOLES.astype(object),
    ],
    ids=["array", "list", "float32", "tensor", "pandas", "object"],
)
@pytest.mark.parametrize("reset", [True, False])
def test_nan_passes_where_missing_values_are_allowed(rows, reset):
    model = Spread()
    as_rows(model, rows, reset=True, missing=True)
    x = as_rows(model, rows, reset=reset, missing=True)
    np.testing.assert_array_equal(x.double(), HOLES)
    with pytest.raises(DataError, match="X contains NaN at row 0, column 1"):
        as_rows(model, rows, reset=reset)


def test_none_is_a_missing_value_too():
    x = as_rows(Spread(), [[1.0, None], [2.0, 3.0]], reset=True, missing=True)
    np.testing.assert_array_equal(x.double(), [[1.0, np.nan], [2.0, 3.0]])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("reset", [True, False])
def test_infinity_is_refused_with_its_place_past_missing_values(value, reset):
    rows = np.full((70_000, 2), 1.0)
    rows[5, 0] = np.nan
    rows[69_999, 1] = value
    model = Spread()
    as_rows(model, rows[:10], reset=True, missing=True)
    with pytest.raises(DataError, match=rf"X contains infinity \({value}\) at row 69999, column 1"):
        as_rows(model, rows, reset=reset, missing=True)
    with pytest.raises(DataError, match="column 'v'"):
        as_rows(model, pd.DataFrame(rows, columns=["u", "v"]), reset=True, missing=True)


def test_large_finite_values_whose_sum_overflows_pass():
    check_finite(torch.full((3, 2), 3e38), "X", missing=True)
    check_finite(torch.tensor([[1e308, 1e308], [torch.nan, 1e308]], dtype=torch.float64), "X", missing=True)


def test_missing_values_are_not_copied():
    rows = HOLES.copy()
    model = Spread()
    assert as_rows(model, rows, reset=True, missing=True).data_ptr() == rows.__array_interface__["data"][0]
