"""Hidden Markov models: all paths, hmmlearn, published numbers, and what bad input gets."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch
from hmmlearn.hmm import CategoricalHMM, GaussianHMM, PoissonHMM
from scipy.special import logsumexp
from sklearn.base import clone

from likely import GaussianMixture, HiddenMarkov, Mixture
from likely.core.errors import ConvergenceWarning
from likely.inference import EM
from likely.likelihoods import (
    Bernoulli,
    Categorical,
    Exponential,
    Gamma,
    MultivariateNormal,
    Normal,
    Poisson,
    Product,
    StudentT,
)

# Earthquakes of magnitude 7 or more in each of the years 1900–2006.
# fmt: off
EARTHQUAKES = np.array([
    13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14, 8, 11, 14, 23, 18, 17, 19, 20,
    22, 19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21, 23, 24, 27, 41, 31, 27, 35, 26, 28, 36, 39, 21, 17, 22, 17, 19,
    15, 34, 10, 15, 22, 18, 15, 20, 15, 22, 19, 16, 30, 27, 29, 23, 20, 16, 21, 21, 25, 16, 18, 15, 18, 14, 10, 15,
    8, 15, 6, 11, 8, 7, 18, 16, 13, 12, 13, 20, 15, 16, 12, 18, 15, 16, 13, 15, 16, 11, 11,
])
# fmt: on

INITIAL = np.array([0.5, 0.2, 0.3])
TRANSITION = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])


def quiet(model, *data, **more):
    """A fit that may stop before the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **more)


def regimes(seed=0, steps=300, columns=2, order=None):
    """Three states that stay for a while, with clearly different means, at random or in an order again and again."""
    rng = np.random.default_rng(seed)
    state = rng.integers(3, size=steps // 10) if order is None else np.resize(order, steps // 10)
    state = state.repeat(10)
    means = np.array([[0.0, 4.0, 9.0], [5.0, 0.0, 7.0]]).T[:, :columns]
    return means[state] + rng.normal(size=(steps, columns)), state


# --- all paths ------------------------------------------------------------------------------------------------------
FAMILIES = {
    "normal": (Normal(), [[0.0, 0.1], [1.0, -0.3], [-1.0, 0.5]], [0.3, -1.2, 2.0, 0.1, 0.9, -0.4]),
    "poisson": (Poisson(), [[0.0], [1.0], [2.0]], [0, 3, 1, 7, 2, 4]),
    "categorical": (Categorical(classes=3), [[1.0, 0, 0], [0, 2.0, 0], [0, 0, -1.0]], [0, 2, 1, 1, 0, 2]),
    "student": (StudentT(3.0), [[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]], [0.3, -1.2, 2.0, 0.1, 0.9, -0.4]),
    "mixed": (
        [Normal(1.0), Poisson()],
        [[0.0, 0.0], [1.0, 1.0], [-1.0, 2.0]],
        [[0.3, 1], [-1.2, 4], [2.0, 0], [0.1, 2], [0.9, 2], [-0.4, 8]],
    ),
    "vector": (
        MultivariateNormal(dim=2),
        [[0.0, 0.0, 0.0, 0.0, 0.5], [1.0, 1.0, 0.2, 0.0, -0.5], [-1.0, 0.0, 0.0, 0.1, 0.0]],
        [[0.3, 1.0], [-1.2, 0.4], [2.0, 0.0], [0.1, 0.2], [0.9, -2.0], [-0.4, 0.8]],
    ),
}


def log_emission(likelihood, eta, x):
    """log p(x | k) by the likelihoods' own distributions; a missing value counts nothing."""
    pieces = likelihood if isinstance(likelihood, list) else [likelihood]
    eta, x = torch.tensor(eta, dtype=torch.float64), torch.tensor(x, dtype=torch.float64).reshape(len(x), -1)
    total, start, column = torch.zeros(len(x), len(eta), dtype=torch.float64), 0, 0
    for piece in pieces:
        wide = 2 if piece.event_dim else 1
        own = x[:, column : column + wide]
        gone = own.isnan().any(1)
        own = torch.where(gone[:, None], 1.0, own)
        size = piece.size(piece.target(own if piece.event_dim else own[:, 0]))
        spread = eta[:, start : start + size]
        value = piece.distribution(spread).log_prob(own[:, None] if piece.event_dim else own)
        total += torch.where(gone[:, None], 0.0, value)
        start, column = start + size, column + wide
    return total.numpy()


@pytest.mark.parametrize("missing", [(), (0,), (2, 3), (5,)])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_is_that_of_all_paths(family, missing):
    likelihood, eta, x = FAMILIES[family]
    x = np.array(x, dtype=float)
    x[list(missing)] = np.nan
    model = HiddenMarkov.from_parameters(likelihood, INITIAL, TRANSITION, eta)
    emitted = log_emission(likelihood, eta, x)
    paths = np.array(list(itertools.product(range(3), repeat=6)))
    joint = np.log(INITIAL[paths[:, 0]]) + np.log(TRANSITION[paths[:, :-1], paths[:, 1:]]).sum(1)
    joint = joint + emitted[np.arange(6), paths].sum(1)
    total = logsumexp(joint)
    weight = np.exp(joint - total)
    posterior = np.array([[weight[paths[:, t] == k].sum() for k in range(3)] for t in range(6)])
    assert model.log_prob(x)[0] == pytest.approx(total, rel=1e-12)
    assert model.score(x) == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(model.posterior(x).probs, posterior, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(x), posterior, atol=1e-12)
    states, value = model.decode(x, return_log_prob=True)
    np.testing.assert_array_equal(states, paths[joint.argmax()])
    assert value[0] == pytest.approx(joint.max(), rel=1e-12)
    likeliest, value = model.decode(x, method="posterior", return_log_prob=True)
    np.testing.assert_array_equal(likeliest, posterior.argmax(1))
    assert value[0] == pytest.approx(joint[(paths == likeliest).all(1)][0], rel=1e-12)
    for t in range(6):
        np.testing.assert_allclose(model.filter(x)[t], model.predict_proba(x[: t + 1])[t], atol=1e-12)
    ahead = model.forecast_states(x, 4)
    nothing = np.full((4, *x.shape[1:]), np.nan)
    np.testing.assert_allclose(ahead, model.predict_proba(np.concatenate([x, nothing]))[6:], atol=1e-12)


def test_a_missing_value_is_summed_out():
    """p(x without a step) = Σ over the values of the step, and a missing column leaves the other."""
    likelihood, eta, x = FAMILIES["categorical"]
    model = HiddenMarkov.from_parameters(likelihood, INITIAL, TRANSITION, eta)
    gone = np.array(x, dtype=float)
    gone[2] = np.nan
    filled = [np.where(np.isnan(gone), value, gone) for value in range(3)]
    assert model.log_prob(gone)[0] == pytest.approx(
        logsumexp([model.log_prob(completed)[0] for completed in filled]), rel=1e-12
    )
    likelihood, eta, x = FAMILIES["mixed"]
    both = HiddenMarkov.from_parameters(likelihood, INITIAL, TRANSITION, eta)
    left = HiddenMarkov.from_parameters(Normal(1.0), INITIAL, TRANSITION, np.array(eta)[:, :1])
    x = np.array(x)
    x[:, 1] = np.nan
    assert both.log_prob(x)[0] == pytest.approx(left.log_prob(x[:, 0])[0], rel=1e-12)


def test_sequences_of_any_lengths_are_separate():
    likelihood, eta, x = FAMILIES["poisson"]
    model = HiddenMarkov.from_parameters(likelihood, INITIAL, TRANSITION, eta)
    x = np.array(x)
    parts = [x[:1], x[1:4], x[4:]]
    assert model.log_prob(parts).shape == (3,)
    np.testing.assert_allclose(model.log_prob(parts), [model.log_prob(part)[0] for part in parts], rtol=1e-13)
    np.testing.assert_allclose(model.log_prob(x, lengths=[1, 3, 2]), model.log_prob(parts), rtol=1e-13)
    for decoded, part in zip(model.predict(parts), parts, strict=True):
        np.testing.assert_array_equal(decoded, model.predict(part))
    np.testing.assert_array_equal(model.predict(x, lengths=[1, 3, 2]), np.concatenate(model.predict(parts)))
    np.testing.assert_allclose(np.concatenate(model.filter(parts)), model.filter(x, lengths=[1, 3, 2]))
    assert model.forecast(parts, 2).shape == (3, 2, 1)
    np.testing.assert_allclose(model.forecast(parts, 2)[1], model.forecast(parts[1], 2))
    np.testing.assert_allclose(model.forecast(x, 3), model.forecast_states(x, 3) @ np.exp(eta))


# --- hmmlearn -------------------------------------------------------------------------------------------------------
def peer(kind, **more):
    return kind(3, init_params="", n_iter=1, tol=-np.inf, **more)


def as_peer(model, own, **parameters):
    own.startprob_, own.transmat_ = INITIAL.copy(), TRANSITION.copy()
    for name, value in parameters.items():
        setattr(own, name, value)
    return own


@pytest.mark.parametrize("implementation", ["log", "scaling"])
@pytest.mark.parametrize("kind", ["gaussian", "full", "poisson", "categorical"])
def test_answers_and_one_step_equal_hmmlearn(kind, implementation):
    rng = np.random.default_rng(1)
    lengths = [40, 1, 60, 19]
    if kind in ("gaussian", "full"):
        X, _ = regimes(1, 120)
        mean, log_scale = X[[3, 40, 90]], 0.2 * rng.normal(size=(3, 2))
        if kind == "gaussian":
            eta = np.stack([mean, log_scale], -1).reshape(3, 4)
            model = HiddenMarkov.from_parameters(Normal(), INITIAL, TRANSITION, eta, smoothing=0.0)
            other = peer(GaussianHMM, min_covar=0, covars_prior=0, covars_weight=0, implementation=implementation)
            other = as_peer(model, other, means_=mean, covars_=np.exp(2 * log_scale))
        else:
            eta = np.column_stack([mean, log_scale, [0.1, -0.4, 0.6]])
            model = HiddenMarkov.from_parameters(MultivariateNormal(dim=2), INITIAL, TRANSITION, eta, smoothing=0.0)
            factor = np.exp(log_scale)[:, :, None] * np.array([[[1, 0], [u, 1]] for u in eta[:, 4]])
            options = {"covariance_type": "full", "min_covar": 0, "covars_prior": 0, "covars_weight": 0}
            other = peer(GaussianHMM, implementation=implementation, **options)
            other = as_peer(model, other, means_=mean, covars_=factor @ factor.transpose(0, 2, 1))
    elif kind == "poisson":
        X = rng.poisson(np.array([1.0, 5.0, 20.0])[rng.integers(3, size=120)])[:, None]
        model = HiddenMarkov.from_parameters(Poisson(), INITIAL, TRANSITION, [[0.5], [1.5], [2.5]], smoothing=0.0)
        other = peer(PoissonHMM, lambdas_prior=0, lambdas_weight=0, implementation=implementation)
        other = as_peer(model, other, lambdas_=np.exp([[0.5], [1.5], [2.5]]))
    else:
        X = rng.integers(4, size=120)[:, None]
        eta = rng.normal(size=(3, 4))
        likelihood = Categorical(classes=4)
        model = HiddenMarkov.from_parameters(likelihood, INITIAL, TRANSITION, eta, smoothing=0.0)
        other = peer(CategoricalHMM, implementation=implementation)
        other = as_peer(model, other, emissionprob_=np.exp(eta) / np.exp(eta).sum(1, keepdims=True), n_features=4)
    assert model.log_prob(X, lengths).sum() == pytest.approx(other.score(X, lengths), rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(X, lengths), other.predict_proba(X, lengths), atol=1e-8)
    value, states = other.decode(X, lengths, algorithm="viterbi")
    mine, own = model.decode(X, lengths, return_log_prob=True)
    np.testing.assert_array_equal(mine, states)
    assert own.sum() == pytest.approx(value, rel=1e-10)

    again = clone(model).set_params(inference=EM(max_iter=1, tol=0))
    again.fit(X, lengths=lengths, start=model)
    other.fit(X, lengths)
    np.testing.assert_allclose(again.initial_, other.startprob_, atol=1e-8)
    np.testing.assert_allclose(again.transition_, other.transmat_, atol=1e-8)
    if kind in ("gaussian", "full"):
        np.testing.assert_allclose(again.means_, other.means_, rtol=1e-8)
    if kind == "gaussian":
        scale = np.exp(again.eta_[:, 1::2])
        np.testing.assert_allclose(scale**2, np.stack([np.diag(c) for c in other.covars_]), rtol=1e-8)
    elif kind == "full":
        spread = again.likelihood.distribution(torch.from_numpy(again.eta_)).covariance_matrix.numpy()
        np.testing.assert_allclose(spread, other.covars_, rtol=1e-7, atol=1e-8)
    elif kind == "poisson":
        np.testing.assert_allclose(np.exp(again.eta_), other.lambdas_, rtol=1e-8)
    else:
        share = np.exp(again.eta_) / np.exp(again.eta_).sum(1, keepdims=True)
        np.testing.assert_allclose(share, other.emissionprob_, atol=1e-8)


@pytest.mark.parametrize(("states", "value"), [(1, 391.9189), (2, 341.8787), (3, 328.5275), (4, 326.4106)])
def test_earthquakes_have_the_published_likelihoods(states, value):
    """All of 100 random starts of three states end there, but 1 in 20 of four: these begin near the best."""
    assert len(EARTHQUAKES) == 107
    inference, start = EM(max_iter=600, tol=1e-8, starts=3 if states == 3 else 1), None
    if states == 4:
        follows = [[0.8, 0, 0, 0.2], [0, 0.96, 0.04, 0], [0, 0.04, 0.91, 0.05], [0, 0, 0.18, 0.82]]
        rates, follows = [[12.2], [13.3], [19.8], [29.7]], 0.84 * np.array(follows) + 0.04
        start = HiddenMarkov.from_parameters(Poisson(), np.full(4, 0.25), follows, np.log(rates), smoothing=0.0)
    model = HiddenMarkov(Poisson(), states, inference=inference, init="random", smoothing=0.0, random_state=0)
    quiet(model, EARTHQUAKES, start=start)
    assert -model.log_likelihood_ == pytest.approx(value, abs=1e-4)
    assert model.aic(EARTHQUAKES) == pytest.approx(2 * value + 2 * (states**2 + states - 1), abs=1e-3)
    assert model.bic(EARTHQUAKES) == pytest.approx(2 * value + np.log(107) * (states**2 + states - 1), abs=1e-3)


# --- EM -------------------------------------------------------------------------------------------------------------
def positive(x):
    return np.abs(x) + 0.1


EMISSIONS = {
    "normal": (Normal(), lambda x: x),
    "student": (StudentT(), lambda x: x),
    "poisson": (Poisson(), lambda x: np.round(positive(x))),
    "exponential": (Exponential(), positive),
    "gamma": (Gamma(), positive),
    "bernoulli": (Bernoulli(), lambda x: x > 3),
    "categorical": (Categorical(), lambda x: np.clip(np.round(x / 3), 0, 3)),
    "vector": (MultivariateNormal(), lambda x: x),
    "product": (Product({"a": Normal(), "b": Gamma()}), lambda x: np.column_stack([x[:, 0], positive(x[:, 1])])),
    "mixture": (Mixture(Normal(), n_components=2), lambda x: x),
    "mixture of counts": (Mixture(Poisson(), n_components=2), lambda x: np.round(positive(x))),
    "gaussian mixture": (GaussianMixture(2, covariance="full"), lambda x: x),
    "tied mixture": (GaussianMixture(2, covariance="tied"), lambda x: x),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", EMISSIONS)
def test_the_likelihood_never_falls(name, missing):
    likelihood, change = EMISSIONS[name]
    X = np.asarray(change(regimes(2, 150)[0]), dtype=float)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        X[20:25] = np.nan
    inference = EM(max_iter=12, tol=0, starts=2)
    model = quiet(HiddenMarkov(likelihood, 3, inference=inference, random_state=0), X, lengths=[70, 80])
    assert len(model.history_) >= 3
    assert (np.diff(model.history_) > -1e-8 * abs(model.history_[-1])).all()
    assert model.history_[-1] > model.history_[0]
    assert model.log_likelihood_ == pytest.approx(model.log_prob(X, lengths=[70, 80]).sum(), rel=1e-9)
    for learned in (model.initial_, model.transition_):
        np.testing.assert_allclose(learned.sum(-1), 1.0, atol=1e-12)


def test_a_prior_on_transitions_is_a_count_in_advance_and_never_falls():
    X, _ = regimes(0, 200)
    plain = quiet(HiddenMarkov(n_states=3, inference=EM(max_iter=30, tol=0), random_state=0), X)
    held = HiddenMarkov(n_states=3, inference=EM(max_iter=30, tol=0), transition_prior=5.0, random_state=0)
    quiet(held, X)
    assert (np.diff(held.history_) > -1e-8).all()
    assert held.transition_.min() > plain.transition_.min()
    assert held.history_[-1] - held.log_likelihood_ == pytest.approx(5 * np.log(held.transition_).sum(), abs=1e-3)


def test_states_are_recovered():
    """States five standard deviations apart: fewer than 1 % of steps go astray."""
    X, truth = regimes(4, 2000)
    model = HiddenMarkov(n_states=3, random_state=0).fit(X)
    states = model.predict(X)
    table = np.array([[(states[truth == i] == j).mean() for j in range(3)] for i in range(3)])
    assert table.max(1).min() > 0.98
    assert sorted(table.argmax(1).tolist()) == [0, 1, 2]
    assert model.converged_
    assert model.unvisited_ == []
    np.testing.assert_allclose(model.stationary_ @ model.transition_, model.stationary_, atol=1e-12)


def test_weights_are_repeats():
    """Each state is seen in what has weight."""
    X, _ = regimes(0, 120, order=[0, 1, 2])
    parts = [X[:40], X[40:70], X[70:]]
    options = {"n_states": 3, "inference": EM(max_iter=5, tol=0), "random_state": 0}
    start = quiet(HiddenMarkov(**options), X)
    weighted = quiet(HiddenMarkov(**options), parts, sample_weight=[2, 1, 0], start=start)
    repeated = quiet(HiddenMarkov(**options), [parts[0], parts[0], parts[1]], start=start)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(weighted.transition_, repeated.transition_, atol=1e-6)
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-6)


def test_one_state_is_the_likelihood_alone():
    X, _ = regimes(0, 100)
    model = HiddenMarkov(n_states=1, smoothing=0.0, random_state=0).fit(X)
    np.testing.assert_allclose(model.means_, X.mean(0, keepdims=True))
    normal = torch.distributions.Normal(torch.from_numpy(X.mean(0)), torch.from_numpy(X.std(0)))
    assert model.log_likelihood_ == pytest.approx(float(normal.log_prob(torch.from_numpy(X)).sum()), rel=1e-9)


# --- transitions ----------------------------------------------------------------------------------------------------
def test_left_right_stays_left_right():
    rng = np.random.default_rng(0)
    sequences = [
        np.concatenate([rng.normal(m, 1.0, size=rng.integers(5, 15)) for m in (0.0, 6.0, -4.0)]) for _ in range(20)
    ]
    model = HiddenMarkov(n_states=3, transitions="left-right", random_state=0).fit(sequences)
    assert (np.tril(model.transition_, -1) == 0).all()
    assert model.initial_.tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_allclose(model.means_[:, 0], [0.0, 6.0, -4.0], atol=0.5)
    for path in model.predict(sequences):
        assert path[0] == 0
        assert (np.diff(path) >= 0).all()
    assert model.stationary_.round(9).tolist() == [0.0, 0.0, 1.0]
    several = HiddenMarkov(n_states=3, transitions="left-right", inference=EM(starts=3), random_state=0).fit(sequences)
    assert several.log_likelihood_ >= model.log_likelihood_ - 1e-6


def test_cyclic_and_masked_transitions_keep_their_zeros():
    rng = np.random.default_rng(0)
    X = np.tile(np.repeat([0.0, 5.0, 10.0, -5.0], 8), 10) + rng.normal(size=320)
    model = HiddenMarkov(n_states=4, transitions="cyclic", random_state=0).fit(X)
    allowed = np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1)
    assert (model.transition_[~allowed] == 0).all()
    order = model.means_[:, 0].round().astype(int)
    turn = int(np.flatnonzero(order == 0)[0])
    np.testing.assert_allclose(np.roll(model.means_[:, 0], -turn), [0, 5, 10, -5], atol=0.5)
    masked = HiddenMarkov(n_states=4, transitions=allowed.tolist(), random_state=0).fit(X)
    assert (masked.transition_[~allowed] == 0).all()
    assert masked.n_parameters_ == 3 + 4 + 8


def test_a_transition_that_is_allowed_never_becomes_impossible():
    X = np.repeat([0.0, 50.0], 30) + np.random.default_rng(0).normal(size=60)
    model = HiddenMarkov(random_state=0, inference=EM(max_iter=500, tol=1e-12)).fit(X)
    assert 0 < model.transition_.min() < 1e-20
    assert np.isfinite(model.log_prob(X[::-1].copy())).all()
