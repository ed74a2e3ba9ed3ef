"""Models whose parameters are many draws: answers average over them, and a file holds them or is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import norm

import likely
from likely import PCA, FactorAnalysis, GaussianMixture, HiddenMarkov, KalmanFilter, Mixture
from likely.core.errors import LikelyWarning, ModelFileError
from likely.inference import MAP, Ensemble
from likely.likelihoods import Normal

X = np.array([[-2.0], [-1.0], [0.5], [1.5], [3.0]])
MEANS, VARIANCES, WEIGHTS = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 1.0, 4.0]), np.array([0.2, 0.5, 0.3])


@pytest.fixture
def drawn():
    """One normal distribution, fitted to X, with three draws of its parameters in place of a sampler's."""
    model = GaussianMixture(1).fit(X)
    point = model._point()
    assert {name: tuple(value.shape) for name, value in point.items()} == {
        "mean": (1, 1),
        "covariance": (1, 1, 1),
        "weights": (1,),
    }
    model.draws_ = {
        "mean": MEANS.reshape(3, 1, 1),
        "covariance": VARIANCES.reshape(3, 1, 1, 1),
        "weights": np.ones((3, 1)),
        "member_weights": WEIGHTS,
    }
    return model


def test_log_prob_is_that_of_the_weighted_average_of_densities(drawn):
    expected = np.log(norm(MEANS, np.sqrt(VARIANCES)).pdf(X) @ WEIGHTS)
    np.testing.assert_allclose(drawn.log_prob(X), expected, rtol=1e-12)


def test_a_file_keeps_the_draws_and_a_new_fit_forgets_them(drawn, tmp_path):
    drawn.save(tmp_path / "draws.likely")
    loaded = likely.load(tmp_path / "draws.likely")
    assert set(loaded.draws_) == set(drawn.draws_)
    for name, value in drawn.draws_.items():
        np.testing.assert_array_equal(loaded.draws_[name], value)
    np.testing.assert_array_equal(loaded.log_prob(X), drawn.log_prob(X))
    assert drawn.fit(X).draws_ is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", np.zeros((2, 1, 1))),  # two draws of three weights
        ("mean", np.zeros((3, 1, 2))),  # two columns
        ("mean", np.full((3, 1, 1), np.nan)),
        ("mean", None),
        ("covariance", np.ones((3, 1, 1, 1), np.float32)),
        ("member_weights", np.array([0.2, 0.5, 0.2])),
        ("member_weights", np.array([-0.2, 0.9, 0.3])),
        ("member_weights", None),
        ("other", np.zeros(3)),
    ],
)
def test_a_file_whose_draws_do_not_fit_is_refused(drawn, name, value):
    learned, tensors = drawn._state()
    tensors.pop(f"draws.{name}", None)
    if value is not None:
        tensors[f"draws.{name}"] = torch.from_numpy(value)
    words = "The file does not fit GaussianMixture: its draws are not those of its model"
    with pytest.raises(ModelFileError, match=words):
        GaussianMixture(1)._restore(learned, tensors)


@pytest.mark.parametrize("kind", ["mixture", "gaussian", "tied", "chain", "plane", "series"])
def test_new_rows_come_from_all_draws(kind):
    """Two draws far apart, of equal weight: both are seen among 64 rows, but for one run in 10¹⁹."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    inference = Ensemble(2, by=MAP(epochs=1))
    model = {
        "mixture": Mixture(Normal(), 2, inference=inference, random_state=0),
        "gaussian": GaussianMixture(2, inference=inference, random_state=0),
        "tied": GaussianMixture(2, "tied", inference=inference, random_state=0),
        "chain": HiddenMarkov(Normal(), 2, inference=inference, random_state=0),
        "plane": PCA(1, inference=inference, random_state=0),
        "series": KalmanFilter(1, inference=inference, random_state=0),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model.fit(X)
    for name in ("eta", "mean", "observation_offset"):
        if name in model.draws_:
            value = model.draws_[name]
            columns = value[..., [0, 2]] if kind in ("mixture", "chain") else value
            columns += np.array([-1e3, 1e3]).reshape(2, *(1,) * (columns.ndim - 1))
            if columns is not value:
                value[..., [0, 2]] = columns
    options = {"length": 3} if kind in ("chain", "series") else {}
    rows = model.sample(64, random_state=1, **options).reshape(64, -1)
    assert {True, False} == set((rows[:, 0] > 0).tolist())
    assert (np.abs(np.abs(rows) - 1e3) < 300).all()
    np.testing.assert_array_equal(rows, model.sample(64, random_state=1, **options).reshape(64, -1))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weights", np.zeros((3, 1)), "draws of weights in this file must each be probabilities that sum to 1"),
        ("covariance", -VARIANCES.reshape(3, 1, 1, 1), "draws of covariance .* symmetric and positive semidefinite"),
    ],
)
def test_draws_out_of_range_are_refused(name, value, message, drawn, tmp_path):
    drawn.draws_[name] = value
    drawn.save(tmp_path / "draws.likely")
    with pytest.raises(ModelFileError, match=message):
        likely.load(tmp_path / "draws.likely")


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (Mixture(Normal(), 2), ["weights"]),
        (HiddenMarkov(Normal(), 2), ["chain.initial", "chain.transition"]),
        (FactorAnalysis(1), ["noise"]),
        (PCA(1), ["noise"]),
        (KalmanFilter(1), ["transition_covariance", "observation_covariance", "initial_covariance"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_negative_draws_of_every_model_are_refused(model, names, tmp_path):
    model.set_params(inference=Ensemble(2, by=MAP(epochs=1)), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model.fit(np.random.default_rng(0).normal(size=(30, 2)))
    for name in names:
        kept = model.draws_[name]
        model.draws_[name] = -kept - 0.1
        model.save(tmp_path / "draws.likely")
        with pytest.raises(ModelFileError, match=f"draws of {name} in this file must each be"):
            likely.load(tmp_path / "draws.likely")
        model.draws_[name] = kept
    model.save(tmp_path / "draws.likely")
    likely.load(tmp_path / "draws.likely")


@pytest.mark.parametrize(("model", "name"), [(PCA(1), "loadings_"), (FactorAnalysis(1), "components_")])
def test_loadings_without_a_finite_determinant_are_refused(model, name, tmp_path):
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(200, 1)) + rng.normal(size=(200, 4)))  # one factor in all columns
    setattr(model, name, np.full_like(getattr(model, name), 1e200))
    model.save(tmp_path / "huge.likely")
    with pytest.raises(ModelFileError, match="loadings and noise in this file are so far apart in size"):
        likely.load(tmp_path / "huge.likely")
