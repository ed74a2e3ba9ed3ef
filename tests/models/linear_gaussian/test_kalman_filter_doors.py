"""Kalman filters as estimators: conventions, what is refused, and several processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.models.linear_gaussian.test_kalman_filter import MATRICES, drawn, known, quiet

import likely
from likely import KalmanFilter
from likely.core.errors import DataError, SpecError

# --- as an estimator --------------------------------------------------------------------------------------------------


def test_saved_and_loaded_it_is_the_same(tmp_path):
    frame = pd.DataFrame(drawn(40, missing=0.1), columns=["a", "b", "c"])
    model = KalmanFilter(
        transition=np.array(MATRICES["transition"]),
        initial_covariance="diffuse",
        learn=frozenset({"observation", "observation_covariance"}),
        inference=quiet(max_iter=3),
        random_state=0,
    ).fit(frame)
    model.save(tmp_path / "series.likely")
    loaded = likely.load(tmp_path / "series.likely")
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(loaded.history_, model.history_)
    assert (loaded.n_iter_, loaded.converged_) == (model.n_iter_, model.converged_)
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    again = clone(loaded).fit(frame)
    np.testing.assert_allclose(again.observation_, model.observation_, rtol=1e-12)


def test_structures_are_saved_and_cloned(tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 1))
    model = clone(KalmanFilter.seasonal(4, inference=quiet(max_iter=2))).fit(x)
    model.save(tmp_path / "season.likely")
    loaded = likely.load(tmp_path / "season.likely")
    np.testing.assert_array_equal(loaded.forecast(x, 3).upper, model.forecast(x, 3).upper)


def test_a_model_of_known_matrices_is_fitted_without_a_step():
    model, X = known(), drawn(20)
    model.fit(X)
    assert (model.n_iter_, model.converged_) == (0, True)
    np.testing.assert_allclose(model.history_, model.log_prob(X), rtol=1e-12)


def test_a_fit_that_fails_leaves_no_model_behind():
    model = known()
    with pytest.raises(DataError, match="infinity"):
        model.fit([[np.inf, 0.0, 0.0]])
    assert not hasattr(model, "transition_")


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"transition": np.eye(3)},
            r"transition_covariance has shape \(2, 2\); for 3 states it must be \(3, 3\)",
        ),
        (
            {"observation": np.eye(2)},
            r"observation has shape \(2, 2\); for 2 states and 3 columns of X it must be \(3, 2\)",
        ),
        ({"n_states": 3}, r"transition has shape \(2, 2\); for 3 states it must be \(3, 3\)"),
        ({"n_states": 0}, r"n_states=0\): n_states must be a positive integer, or None"),
        (
            {"observation_covariance": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]},
            r"observation_covariance is not a covariance: its smallest eigenvalue is -1, and none may be negative",
        ),
        ({"transition_covariance": [-0.5, 1]}, r"transition_covariance is not a covariance: .* eigenvalue is -0.5"),
        ({"initial_covariance": [[1, 0.5], [0, 1]]}, r"initial_covariance is not symmetric: 0.5 at \(0, 1\), but 0 at"),
        ({"initial_mean": [np.nan, 0]}, r"initial_mean has the value nan; all its values must be finite"),
        ({"initial_covariance": "huge"}, r"initial_covariance must be numbers or \"diffuse\""),
        ({"transition": [[1, 2], [3]]}, r"transition=\[\[1, 2\], \[3\]\]\): transition must be numbers"),
        ({"covariance": "tied"}, r"covariance='tied'\): covariance is \"full\" or \"diagonal\""),
        ({"learn": "noise"}, r"learn=…\) names 'noise'; it can name transition, transition_offset"),
        (
            {"covariance": "diagonal", "learn": "transition_covariance"},
            r"transition_covariance is not diagonal, so EM cannot begin there",
        ),
        ({"inference": 3, "learn": None}, "inference must be one of"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(SpecError, match=message):
        KalmanFilter(**MATRICES | arguments).fit(drawn(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: m.fit([x, x[:0]]), r"X\[1\] is empty"),
        (lambda m, x: m.fit(np.column_stack([x[:, :2], np.full(len(x), np.nan)])), "Column 2 of X has no value"),
        (lambda m, x: m.log_prob(x[:, :2]), "2 features"),
        (lambda m, x: m.log_prob(x, lengths=[3, 3]), "lengths"),
        (lambda m, x: m.forecast(x, steps=0), "steps=0: it must be a positive integer"),
        (lambda m, x: m.forecast(x, steps=2, level=90), "level=90: the probability of the interval must be between"),
        (lambda m, x: m.sample(length=0), "length=0: how many to draw must be"),
        (lambda m, x: m.sample(-1), "n=-1: how many to draw must be"),
        (lambda m, x: m.sample(2, [x, x]), "condition has 2 series; a sample continues one"),
    ],
)
def test_wrong_data_are_refused(call, message):
    model = KalmanFilter(inference=quiet(max_iter=1)).fit(drawn(10))
    with pytest.raises(DataError, match=message):
        call(model, drawn(10))


def test_an_observation_without_noise_that_is_known_before_is_refused():
    with pytest.raises(DataError, match="The observation at row 1 has no density given the rows before it"):
        KalmanFilter(
            transition=1.0, observation=[[1.0]], transition_covariance=0.0, observation_covariance=0.0, n_states=1,
            initial_mean=0.0, initial_covariance=1.0,
        ).fit([[1.0], [1.0]])  # fmt: skip


# --- several processes ------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import torch
torch.set_num_threads(1)
from likely import KalmanFilter
from likely.core import distributed
from likely.inference import EM
random = np.random.default_rng(0)
X = [np.cumsum(random.normal(size=(n, 2)), 0) for n in (40, 3, 25, 1, 30)]
X[2][random.random(X[2].shape) < 0.2] = np.nan
model = KalmanFilter(inference=EM(max_iter=15, tol=0.0, starts=2), random_state=0).fit(X)
alone = KalmanFilter.local_level(inference=EM(max_iter=3, tol=0.0)).fit(X[0][:, :1])
known = KalmanFilter(transition=np.eye(2), observation=np.eye(2), transition_covariance=1.0, observation_covariance=1.0,
                     initial_mean=0.0, initial_covariance=1.0).fit(X)
answers = {f"{i}{name}": getattr(m, name) for i, m in enumerate((model, alone, known)) for name in m._arrays}
"""


def test_two_processes_fit_what_one_fits(by_processes):
    alone, first, second = by_processes(SCRIPT)
    for name in alone:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_allclose(first[name], alone[name], rtol=1e-8, atol=1e-8, err_msg=name)
