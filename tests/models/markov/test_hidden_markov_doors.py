"""Hidden Markov models as estimators: samples, conventions, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.models.markov.test_hidden_markov import EMISSIONS, FAMILIES, INITIAL, TRANSITION, quiet, regimes

import likely
from likely import GaussianMixture, HiddenMarkov
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import EM
from likely.likelihoods import (
    Categorical,
    Normal,
    Poisson,
)


# --- samples --------------------------------------------------------------------------------------------------------
def test_samples_have_the_frequencies_of_the_model(seed):
    """100,000 steps in 500 sequences: 5 standard errors (of correlated steps, 3 times those of independent ones)."""
    likelihood, eta, _ = FAMILIES["poisson"]
    model = HiddenMarkov.from_parameters(likelihood, INITIAL, TRANSITION, eta)
    rows, states = model.sample(500, random_state=seed, length=200, return_hidden=True)
    assert (rows.shape, states.shape) == ((500, 200, 1), (500, 200))
    share = np.bincount(states.ravel(), minlength=3) / states.size
    np.testing.assert_allclose(share, model.stationary_, atol=0.024)
    first = np.bincount(states[:, 0], minlength=3) / 500
    assert (np.abs(first - INITIAL) < 5 * np.sqrt(INITIAL * (1 - INITIAL) / 500)).all()
    for k, rate in enumerate(np.exp(eta)[:, 0]):
        own = rows[states == k]
        assert abs(own.mean() - rate) < 5 * np.sqrt(rate / len(own))
    np.testing.assert_array_equal(model.sample(500, random_state=seed, length=200), rows)


def test_samples_of_mixtures_and_forecasts_of_their_means(seed):
    """20,000 steps: the mean of each state within 5 standard errors."""
    X, _ = regimes(0, 300)
    model = quiet(HiddenMarkov(GaussianMixture(2), 3, inference=EM(max_iter=5, tol=0), random_state=seed), X)
    rows, states = model.sample(1, random_state=seed, length=20_000, return_hidden=True)
    for k in range(3):
        own = rows[states == k]
        assert (np.abs(own.mean(0) - model.means_[k]) < 5 * own.std(0) / np.sqrt(len(own))).all()
    assert model.forecast(X, 5).shape == (5, 2)
    np.testing.assert_allclose(model.forecast(X, 500)[-1], model.stationary_ @ model.means_, atol=1e-6)


# --- estimator ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["normal", "product", "mixture", "gaussian mixture", "categorical"])
def test_files_bring_it_back(name, tmp_path):
    likelihood, change = EMISSIONS[name]
    X = np.asarray(change(regimes(2, 60)[0]), dtype=float)
    mask = np.array([[True, True], [True, True]])
    model = HiddenMarkov(likelihood, 2, transitions=mask, inference=EM(max_iter=3, tol=0), random_state=0)
    quiet(model, X)
    model.save(tmp_path / "chain.likely")
    again = likely.load(tmp_path / "chain.likely")
    np.testing.assert_array_equal(again.log_prob(X), model.log_prob(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.transition_, model.transition_)
    np.testing.assert_array_equal(again.history_, model.history_)
    assert again.emission_parameters_.keys() == model.emission_parameters_.keys()
    assert again.n_parameters_ == model.n_parameters_
    assert np.isfinite(quiet(again, X).log_likelihood_)


def test_the_same_seed_gives_the_same_bits_and_global_state_stays():
    X, _ = regimes(0, 100)
    before = torch.random.get_rng_state()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    fits = [quiet(HiddenMarkov(n_states=3, inference=EM(starts=2), random_state=7), X) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].history_, fits[1].history_)
    np.testing.assert_array_equal(fits[0].transition_, fits[1].transition_)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_names_of_columns_are_kept_and_text_is_a_likelihood():
    import pandas as pd

    X = pd.DataFrame(regimes(0, 60)[0], columns=["a", "b"])
    model = quiet(HiddenMarkov("normal", inference=EM(max_iter=2), random_state=0), X)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "c"}))


SCRIPT = """
import os, sys, warnings
import numpy as np
import torch
torch.set_num_threads(1)
from likely import HiddenMarkov, Mixture
from likely.core import distributed
from likely.inference import EM
from likely.likelihoods import Normal, StudentT
warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X = [random.normal(size=(n, 2)) + 4 * (np.arange(n) // 5 % 2)[:, None] for n in (30, 1, 17, 44, 9)]
X[2][3] = np.nan
answers = {}
cases = {"normal": (Normal(), X), "student": (StudentT(), X), "mixture": (Mixture(n_components=2), X)}
cases["one"] = (Normal(), X[3])
for name, (likelihood, data) in cases.items():
    model = HiddenMarkov(likelihood, 2, inference=EM(max_iter=6, tol=0, starts=2), random_state=0).fit(data)
    learned = [model.initial_, model.transition_, model.history_, model.log_likelihood_]
    learned += model.emission_parameters_.values()
    answers[name] = np.concatenate([np.ravel(array) for array in learned])
"""


@pytest.mark.sensitive
def test_two_processes_find_what_one_finds(by_processes):
    alone, *together = by_processes(SCRIPT)
    for name, value in alone.items():
        for process in together:
            np.testing.assert_allclose(process[name], value, rtol=0, atol=1e-8 * np.abs(value).max(), err_msg=name)


# --- bad input ------------------------------------------------------------------------------------------------------
def test_impossible_observations():
    """So far from every state that not even the logarithm of the density can be written."""
    X = [np.zeros(5), np.array([0.0, 1.0, 1e200, 1.0])]
    model = HiddenMarkov.from_parameters(Normal(1.0), [0.5, 0.5], np.full((2, 2), 0.5), [[0.0], [1.0]], smoothing=0.0)
    assert np.isneginf(model.log_prob(X)).tolist() == [False, True]
    for question in (model.posterior, model.filter, model.predict, lambda x: model.decode(x, method="posterior")):
        with pytest.raises(DataError, match=r"sequence 1 has probability 0 \(no state is possible at step 2\)"):
            question(X)
    with pytest.raises(DataError, match="sequence 1 is impossible from step 2 on: no allowed state"):
        clone(model).fit(X, start=model)


def test_states_never_visited_are_reported_and_keep_their_transitions():
    X = np.random.default_rng(0).normal(size=40)
    transition = [[1.0, 0.0], [0.4, 0.6]]
    start = HiddenMarkov.from_parameters(Normal(), [1.0, 0.0], transition, [[0.0, 0.0], [0.0, 0.0]])
    with pytest.warns(LikelyWarning, match="no step of the data is spent in state 1"):
        model = HiddenMarkov(transitions=[[1, 0], [1, 1]], random_state=0).fit(X, start=start)
    assert model.unvisited_ == [1]
    np.testing.assert_allclose(model.transition_[1], [0.4, 0.6])
    assert np.isfinite(model.eta_).all()
    np.testing.assert_allclose(model.means_[1], X.mean(), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": 0}, r"HiddenMarkov\(n_states=0\): n_states must be a positive integer"),
        ({"n_states": 1.5}, r"n_states=1.5\): n_states must be"),
        ({"init": "zeros"}, 'init must be "k-means\\+\\+" or "random"'),
        ({"smoothing": -1.0}, "smoothing must be 0 or a positive number"),
        ({"transition_prior": np.nan}, "transition_prior must be 0 or a positive number"),
        ({"transitions": "ring"}, 'transitions=\'ring\': use "full", "left-right", "cyclic"'),
        ({"transitions": [[1, 1], [0, 0]]}, "row 1 of transitions allows nothing: state 1 has no successor"),
        ({"transitions": np.ones((3, 3))}, r"transitions has shape \(3, 3\), but 2 states need \(2, 2\)"),
        ({"inference": 3}, "inference must be one of the inference specs"),
        ({"likelihood": 3}, "likelihood must be one of the likelihood specs"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(SpecError, match=message):
        HiddenMarkov(**arguments).fit(np.arange(10.0))


def test_data_are_checked():
    X, _ = regimes(0, 40)
    with pytest.raises(DataError, match=r"column 1 of X has no value: all its steps are NaN"):
        HiddenMarkov().fit(np.column_stack([X[:, 0], np.full(40, np.nan)]))
    with pytest.raises(DataError, match="X has a negative value"):
        HiddenMarkov(Poisson()).fit([1, 2, -1])
    with pytest.raises(DataError, match=r"X\[1\] is empty"):
        HiddenMarkov().fit([X, X[:0]])
    model = quiet(HiddenMarkov(inference=EM(max_iter=2), random_state=0), X)
    with pytest.raises(DataError, match="X has 3 features, but HiddenMarkov is expecting 2"):
        model.predict(np.zeros((4, 3)))
    with pytest.raises(SpecError, match='decode by "viterbi" or "posterior"'):
        model.decode(X, method="best")
    for steps in (0, 1.5):
        with pytest.raises(DataError, match="how far to look ahead"):
            model.forecast_states(X, steps)
        with pytest.raises(DataError, match="how many to draw"):
            model.sample(steps)
    with pytest.raises(SpecError, match="start has 2 states of 2 columns, but n_states=3"):
        HiddenMarkov(n_states=3).fit(X, start=model)
    with pytest.raises(DataError, match=r"\(K,\), \(K, K\) and \(K, size\)"):
        HiddenMarkov.from_parameters(Normal(), [1.0], [[1.0]], [0.0, 0.0])
    with pytest.raises(DataError, match="transition must hold probabilities that sum to 1"):
        HiddenMarkov.from_parameters(Poisson(), [1.0], [[0.5]], [[0.0]])
    with pytest.raises(DataError, match="eta has 3 numbers for each state"):
        HiddenMarkov.from_parameters(Normal(), [1.0], [[1.0]], [[0.0, 0.0, 0.0]])
    labels = quiet(HiddenMarkov(Categorical(), inference=EM(max_iter=2), random_state=0), [0, 1, 2, 1, 0, 2, 1])
    with pytest.raises(SpecError, match="which have no mean; use forecast_states"):
        labels.forecast([0, 1], 2)
    with pytest.raises(ValueError, match="not fitted yet"):
        HiddenMarkov().predict(X)
