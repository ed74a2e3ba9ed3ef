"""Missing values under many draws of the parameters: E[m | o] = Σₛ wₛ(o) E[m | o, θₛ], wₛ(o) ∝ wₛ p(o | θₛ)."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_normal, norm

from likely import PCA, FactorAnalysis, FrameModel, GaussianMixture, HiddenMarkov, KalmanFilter, Mixture
from likely.core.errors import DataError
from likely.likelihoods import Categorical, Normal

RNG = np.random.default_rng(0)
WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0, 1.0], [1.5, -1.0, 0.0], [-1.0, 2.0, -1.0]])
LOADINGS = RNG.normal(size=(3, 3, 1))
NOISE = RNG.uniform(0.3, 1.5, size=(3, 3))
COVARIANCES = LOADINGS @ LOADINGS.transpose(0, 2, 1) + np.stack([np.diag(own) for own in NOISE])
HOLES = np.array([[0.7, np.nan, 0.2], [np.nan, -1.0, np.nan], [np.nan, np.nan, np.nan], [1.0, 2.0, 3.0]])
DRAWS = 600


def conditional(means, covariances, row):
    """The mean of all of a row given what is seen of it, under a mixture of normal distributions."""
    seen = ~np.isnan(row)
    evidence, guesses = [], []
    for mean, covariance in zip(means, covariances, strict=True):
        inverse = np.linalg.inv(covariance[np.ix_(seen, seen)])
        guesses.append(mean + covariance[:, seen] @ inverse @ (row - mean)[seen])
        density = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]) if seen.any() else None
        evidence.append(1.0 if density is None else density.pdf(row[seen]))
    weights = WEIGHTS * evidence / (WEIGHTS @ evidence)
    return np.where(seen, row, weights @ guesses)


def check_draws(model, holes, expected, **question):
    """Draws keep what is seen, repeat with a seed, and have the expected mean (false alarm below 1e-8 per value)."""
    gaps = np.isnan(holes)
    several = model.impute(holes, DRAWS, 0, **question)
    assert (np.isnan(holes) == gaps).all()  # what was given is not written to
    assert several.shape == (DRAWS, *np.shape(holes))
    np.testing.assert_array_equal(several[:, ~gaps], np.broadcast_to(holes[~gaps], (DRAWS, (~gaps).sum())))
    np.testing.assert_array_equal(model.impute(holes, 3, 1, **question), model.impute(holes, 3, 1, **question))
    error = several.std(0) / np.sqrt(DRAWS)
    assert (np.abs(several.mean(0) - expected)[gaps] < 6 * error[gaps]).all()


def gaussian(covariance="full"):
    model = GaussianMixture(1, covariance=covariance).fit(RNG.normal(size=(20, 3)))
    matrices = COVARIANCES if covariance != "diag" else NOISE
    model.draws_ = {
        "mean": MEANS[:, None],
        "covariance": matrices[:, None],
        "weights": np.ones((3, 1)),
        "member_weights": WEIGHTS,
    }
    return model


def plane(model):
    model.fit(RNG.normal(size=(60, 1)) + RNG.normal(size=(60, 3)))
    model.draws_ = {"loadings": LOADINGS, "mean": MEANS, "noise": NOISE, "member_weights": WEIGHTS}
    return model


@pytest.mark.parametrize(
    "model",
    [gaussian(), gaussian("tied"), gaussian("diag"), plane(PCA(1)), plane(FactorAnalysis(1))],
    ids=["full", "tied", "diag", "pca", "factors"],
)
def test_rows_of_a_gaussian_are_filled_by_the_average_over_draws(model, seed):
    diagonal = getattr(model, "covariance", "") == "diag"
    covariances = np.stack([np.diag(own) for own in NOISE]) if diagonal else COVARIANCES
    expected = np.stack([conditional(MEANS, covariances, row) for row in HOLES])
    np.testing.assert_allclose(model.impute(HOLES), expected, rtol=1e-9)
    check_draws(model, HOLES, expected)
    several = model.sample(DRAWS, condition=HOLES[:1], random_state=seed)
    error = several.std(0)[1] / np.sqrt(DRAWS)
    assert abs(several.mean(0)[1] - expected[0, 1]) < 6 * error  # false alarm below 1e-8


def test_labels_are_the_most_probable_over_all_draws(seed):
    """The most probable draw says 0, the others together 1."""
    model = Mixture(Categorical(2), 1).fit(np.array([[0.0], [1.0], [1.0]]))
    chances = np.array([[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]])
    eta = np.log(chances)
    assert model._point()["eta"].shape == (1, 2)
    model.draws_ = {"eta": eta[:, None], "weights": np.ones((3, 1)), "member_weights": np.array([0.4, 0.3, 0.3])}
    assert model.impute([[np.nan]]) == 1.0
    several = model.impute([[np.nan]], draws=600, random_state=seed)
    chance = np.array([0.4, 0.3, 0.3]) @ chances[:, 1]
    assert abs(several.mean() - chance) < 6 * np.sqrt(chance * (1 - chance) / 600)  # false alarm below 1e-8


def test_steps_of_a_hidden_markov_model_are_filled_by_averages_over_draws():
    initial = np.array([[0.5, 0.5], [0.8, 0.2], [0.1, 0.9]])
    transition = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]], [[0.2, 0.8], [0.7, 0.3]]])
    centres = np.array([[-1.0, 1.0], [0.0, 3.0], [-2.0, 0.5]])
    model = HiddenMarkov.from_parameters(Normal(1.0), initial[0], transition[0], centres[0][:, None])
    own = model._point()
    model.draws_ = {
        "eta": np.stack([np.broadcast_to(c[:, None], own["eta"].shape) for c in centres]),
        "chain.initial": initial,
        "chain.transition": transition,
        "member_weights": WEIGHTS,
    }
    sequence = np.array([-0.5, np.nan, 2.0])
    total, mean = 0.0, 0.0
    for s, path in itertools.product(range(3), itertools.product(range(2), repeat=3)):
        chance = WEIGHTS[s] * initial[s, path[0]] * transition[s, path[0], path[1]] * transition[s, path[1], path[2]]
        chance *= norm(centres[s, path[0]]).pdf(-0.5) * norm(centres[s, path[2]]).pdf(2.0)
        total, mean = total + chance, mean + chance * centres[s, path[1]]
    filled = model.impute(sequence[:, None])
    np.testing.assert_allclose(filled[:, 0], [-0.5, mean / total, 2.0], rtol=1e-9)
    assert model.log_prob(sequence[:, None]) == pytest.approx(np.log(total), rel=1e-9)
    check_draws(model, sequence[:, None], filled)
    two = model.impute([sequence[:, None], sequence[::-1, None][:1]])
    np.testing.assert_allclose(two[0], filled, rtol=1e-12)
    assert [part.shape for part in model.impute([sequence[:, None]] * 2, draws=5)] == [(5, 3, 1)] * 2


def test_steps_of_a_kalman_filter_are_filled_by_the_average_over_draws():
    moves, noises, starts = np.array([0.9, 0.2, -0.7]), np.array([0.5, 1.0, 0.2]), np.array([1.0, -1.0, 3.0])
    model = KalmanFilter(1, learn=()).fit(RNG.normal(size=(30, 1)))
    fields = {name: np.stack([value.numpy()] * 3) for name, value in model._point().items()}
    fields["transition"] = moves[:, None, None]
    fields["initial_mean"] = starts[:, None]
    fields["observation_covariance"] = noises[:, None, None]
    model.draws_ = {**fields, "member_weights": WEIGHTS}
    row, steps = np.array([0.4, np.nan, -0.3, np.nan]), 4
    means, covariances = [], []
    for s in range(3):
        system = model._member(s)
        mean, spread = system.initial_mean, system.initial_covariance
        cross, centre = np.zeros((steps, steps)), np.zeros(steps)
        for t in range(steps):  # Cov(zₜ, zᵤ) = Var(zₜ) aᵘ⁻ᵗ
            centre[t] = (system.observation @ mean + system.observation_offset)[0]
            for later in range(t, steps):
                cross[t, later] = cross[later, t] = (system.observation[0, 0] ** 2 * spread * moves[s] ** (later - t))[
                    0, 0
                ]
            mean = system.transition @ mean + system.transition_offset
            spread = moves[s] ** 2 * spread + system.transition_covariance
        means.append(centre)
        covariances.append(cross + noises[s] * np.eye(steps))
    expected = conditional(np.stack(means), np.stack(covariances), row)
    np.testing.assert_allclose(model.impute(row[:, None])[:, 0], expected, rtol=1e-6)
    check_draws(model, row[:, None], expected[:, None])


def test_a_table_is_filled_as_often_as_asked():
    frame = pl.DataFrame({"size": [1.0, 2.0, None, 4.0, 2.5, 3.5], "kind": ["a", "b", "a", None, "a", "b"]})
    model = FrameModel(Mixture(n_components=1)).fit(frame)
    several = model.impute(frame, draws=3, random_state=0)
    assert [type(table) for table in several] == [pl.DataFrame] * 3
    for table in several:
        assert table.null_count().sum_horizontal().item() == 0
        assert table["size"].to_list()[:2] == [1.0, 2.0]
        assert table["kind"][3] in ("a", "b")
    assert [table.equals(other) for table, other in zip(several, model.impute(frame, 3, 0), strict=True)] == [True] * 3


def test_a_row_of_probability_zero_is_refused():
    model = HiddenMarkov.from_parameters(
        Categorical(2), [1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [[0.0, -np.inf], [-np.inf, 0.0]]
    )
    with pytest.raises(DataError, match="probability 0, so that nothing is known of what it misses"):
        model.impute(np.array([[1.0], [np.nan]]))
