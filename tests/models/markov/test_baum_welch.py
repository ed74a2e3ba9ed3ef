"""Baum–Welch against all paths of short sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import poisson

from likely import HiddenMarkov
from likely.core.errors import DataError
from likely.data.rows import Ragged
from likely.inference import EM, Latent
from likely.likelihoods import Poisson
from likely.models.emissions import Columns
from likely.models.markov.baum_welch import LEAST, BaumWelch

X = np.array([1.0, 0.0, 4.0, 6.0, 2.0, 5.0, 3.0])
OFFSETS, WEIGHT = np.array([0, 4, 7]), np.array([1.0, 2.5])
INITIAL, TRANSITION = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]])
RATES = np.array([1.5, 4.0])


def bound(*, prior=0.0, smoothing=0.0, allowed=None, **options):
    x = torch.from_numpy(X)[:, None]
    emission = Columns.of(Poisson(), x, smoothing=smoothing)
    allowed = np.ones((2, 2), dtype=bool) if allowed is None else np.array(allowed)
    data = Ragged(x, torch.from_numpy(OFFSETS))
    chain = (WEIGHT, allowed, np.ones(2, dtype=bool))
    return BaumWelch(emission, data, *chain, prior=prior, init="random", ordered=False, **options)


def parameters(transition=TRANSITION):
    eta = torch.from_numpy(np.log(RATES))[None, :, None]
    return {
        "eta": eta,
        "chain.initial": torch.from_numpy(INITIAL)[None],
        "chain.transition": torch.tensor(transition, dtype=torch.float64)[None],
    }


def enumerated(transition=TRANSITION):
    """Σ over sequences and paths: γ (T, 2), Σξ, γ₁ and log p(x) of each sequence, with weights."""
    seen = poisson(RATES).pmf(X[:, None])
    gamma, pairs, first, log_prob = np.zeros((len(X), 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2)
    for n, (start, stop) in enumerate(itertools.pairwise(OFFSETS)):
        steps = range(stop - start)
        chances = {}
        for path in itertools.product(range(2), repeat=stop - start):
            moves = [transition[i][j] for i, j in itertools.pairwise(path)]
            chances[path] = INITIAL[path[0]] * np.prod(moves) * np.prod([seen[start + t, path[t]] for t in steps])
        total = sum(chances.values())
        log_prob[n] = np.log(total)
        for path, chance in chances.items():
            own = WEIGHT[n] * chance / total
            first[path[0]] += own
            for t in steps:
                gamma[start + t, path[t]] += own
            for i, j in itertools.pairwise(path):
                pairs[i, j] += own
    return gamma, pairs, first, log_prob


def test_one_step_is_that_of_all_paths():
    model = bound()
    statistics, value = model.expect(parameters())
    gamma, pairs, first, log_prob = enumerated()
    assert float(value) == pytest.approx(WEIGHT @ log_prob, rel=1e-11)
    np.testing.assert_allclose(statistics["chain.pairs"][0], pairs, rtol=1e-10)
    np.testing.assert_allclose(statistics["chain.first"][0], first, rtol=1e-10)
    new = model.maximise(parameters(), statistics)
    np.testing.assert_allclose(new["chain.initial"][0], first / first.sum(), rtol=1e-10)
    np.testing.assert_allclose(new["chain.transition"][0], pairs / pairs.sum(1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(new["eta"][0, :, 0].exp(), X @ gamma / gamma.sum(0), rtol=1e-9)


def test_a_prior_adds_to_the_counts_of_what_is_allowed():
    transition = [[0.7, 0.3], [0.0, 1.0]]
    model = bound(prior=2.0, allowed=[[True, True], [False, True]])
    params = parameters(transition)
    new = model.maximise(params, model.expect(params)[0])["chain.transition"][0].numpy()
    counts = enumerated(transition)[1] + 2.0 * np.array([[1, 1], [0, 1]])
    np.testing.assert_allclose(new, counts / counts.sum(1, keepdims=True), rtol=1e-10)
    assert float(model.log_prior(params)) == pytest.approx(2 * np.log(0.7 * 0.3), rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_density_of_sequences_is_the_value_of_em(smoothing):
    model = bound(smoothing=smoothing)
    params = {name: torch.cat([value, value.flip(1)]) for name, value in parameters().items()}  # states exchanged
    params["chain.transition"][1] = params["chain.transition"][1].flip(1)
    x, weight = model.rows()
    values = model.row_log_prob(params, x)
    torch.testing.assert_close(weight @ values, model.expect(params)[1], rtol=1e-10, atol=1e-10)
    if smoothing == 0:
        np.testing.assert_allclose(values, np.stack([enumerated()[3]] * 2, 1), rtol=1e-10)
    for name, value in model.from_free(model.to_free(params)).items():
        torch.testing.assert_close(value, params[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("allowed", [None, [[True, True], [False, True]]], ids=["full", "left-right"])
@pytest.mark.parametrize(("prior", "smoothing"), [(0.0, 0.0), (2.0, 0.3)])
def test_the_gradient_from_the_posterior_is_that_of_autograd(prior, smoothing, allowed, weighted):
    model = bound(prior=prior, smoothing=smoothing, allowed=allowed)
    free = {name: torch.randn(3, *value.shape[1:]).double() for name, value in model.to_free(parameters()).items()}
    x, weight = model.rows()
    asked = (free, x, weight if weighted else None, 0.4)
    value, gradient = model.value_and_grad(*asked)
    expected, by_autograd = Latent.value_and_grad(model, *asked)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
    assert gradient.keys() == free.keys()
    for name, own in by_autograd.items():
        torch.testing.assert_close(gradient[name], own, rtol=1e-6, atol=1e-6)


def test_several_starts_are_those_of_each_alone():
    model = bound()
    params = model.start([0, 1, 2])
    statistics, value = model.expect(params)
    for s in range(3):
        alone = {name: part[s] for name, part in params.items()}
        for name, total in model.at(alone).items():
            torch.testing.assert_close(total, statistics[name][s], rtol=1e-10, atol=1e-12)
        again = model.expect({name: part.unsqueeze(0) for name, part in alone.items()})[1]
        torch.testing.assert_close(again[0], value[s], rtol=1e-12, atol=0)
        model.expect(params)


def test_an_allowed_transition_never_becomes_impossible():
    params = parameters([[1.0, 0.0], [0.0, 1.0]])
    new = bound().maximise(params, bound().expect(params)[0])["chain.transition"][0]
    assert new.tolist() == [[1.0, LEAST], [LEAST, 1.0]]


def test_an_impossible_sequence_is_named():
    model = bound()
    params = parameters()
    params["eta"] = torch.full((1, 2, 1), -torch.inf, dtype=torch.float64)
    with pytest.raises(DataError, match="sequence 0 is impossible from step 0 on: no allowed state"):
        model.expect(params)


def test_first_guesses_count_weights_as_copies():
    """States far apart, so that the clusters of both are the same whatever rows k-means++ draws."""
    rng = np.random.default_rng(0)
    several = [rng.normal(np.where(np.arange(8) < cut, 0.0, 30.0), 1.0).reshape(-1, 1) for cut in (2, 4, 6)]
    weighted, copied = (HiddenMarkov(n_states=2, inference=EM(max_iter=1, tol=0.0), random_state=0) for _ in range(2))
    weighted.fit(several, sample_weight=[1, 2, 3])
    copied.fit([several[0], *[several[1]] * 2, *[several[2]] * 3])
    np.testing.assert_allclose(weighted.history_, copied.history_, rtol=1e-9)
