"""The differentiable log-likelihood: its value, its gradient, and what can be learned with it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from likely import HiddenMarkov
from likely.core.errors import DataError
from likely.data.sequences import offsets_of
from likely.inference import EM
from likely.likelihoods import Normal
from likely.probability.chains import chain_log_prob, sample_states


def scores(seed, states, steps, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((states,), (states, states), (steps, states))
    return [scale * torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes]


def enumerated(initial, transition, emission, lengths):
    """log Σ over paths of exp(score), as a plain tensor program."""
    values = []
    for own in emission.split(lengths):
        paths = torch.tensor(list(itertools.product(range(len(initial)), repeat=len(own))))
        score = initial[paths[:, 0]] + own[torch.arange(len(own)), paths].sum(1)
        values.append((score + transition[paths[:, :-1], paths[:, 1:]].sum(1)).logsumexp(0))
    return torch.stack(values)


@pytest.mark.parametrize("scale", [1.0, 50.0, 500.0])
def test_value_and_gradient_are_those_of_the_sum_over_paths(scale):
    lengths = [6, 1, 4]
    given = [score.requires_grad_() for score in scores(0, 3, 11, scale)]
    weight = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    value = chain_log_prob(*given, lengths)
    oracle = enumerated(*given, lengths)
    torch.testing.assert_close(value, oracle, rtol=1e-12, atol=1e-10)
    mine = torch.autograd.grad((weight * value).sum(), given)
    theirs = torch.autograd.grad((weight * oracle).sum(), given)
    for own, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-10)


def test_gradcheck():
    given = [score.requires_grad_() for score in scores(1, 3, 5)]
    assert torch.autograd.gradcheck(lambda *logs: chain_log_prob(*logs, [2, 3]), given)


def test_forbidden_transitions_and_long_products():
    initial, transition, emission = scores(2, 3, 4)
    transition[2, 0] = transition[1, 0] = -torch.inf
    given = [score.requires_grad_() for score in (initial, transition, emission)]
    value = chain_log_prob(*given)
    torch.testing.assert_close(value, enumerated(*given, [4]), rtol=1e-12, atol=1e-12)
    (slope,) = torch.autograd.grad(value.sum(), given[1])
    assert slope[2, 0] == slope[1, 0] == 0
    ones = chain_log_prob(torch.zeros(4), torch.zeros(4, 4), torch.zeros(5000, 4))  # 4⁵⁰⁰⁰ paths
    torch.testing.assert_close(ones, torch.tensor([5000 * np.log(4.0)], dtype=torch.float32))


def test_an_impossible_sequence_has_value_minus_infinity_and_no_gradient():
    emission = torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]], requires_grad=True)
    value = chain_log_prob(torch.zeros(2), torch.zeros(2, 2), emission)
    assert value.item() == -torch.inf
    (slope,) = torch.autograd.grad(value, emission, torch.ones(1))
    assert torch.equal(slope, torch.zeros(2, 2))


def test_a_second_derivative_is_refused():
    given = [score.requires_grad_() for score in scores(0, 2, 3)]
    (slope,) = torch.autograd.grad(chain_log_prob(*given).sum(), given[2], create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated once, not twice"):
        slope.sum().backward()


def test_a_network_inside_the_emission_learns():
    """Two regimes whose means are opposite curves of an input: gradient ascent raises log p(x) far above a flat fit."""
    torch.manual_seed(0)
    u = torch.linspace(-2, 2, 200).unsqueeze(-1)
    regime = torch.arange(200) // 20 % 2
    x = torch.where(regime == 0, 1.0, -1.0) * (1 + u[:, 0] ** 2) + 0.1 * torch.randn(200)
    network = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    change, log_scale = torch.zeros(2, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([*network.parameters(), change, log_scale], lr=0.02)
    values = []
    for _ in range(500):
        log_emission = torch.distributions.Normal(network(u), log_scale.exp()).log_prob(x.unsqueeze(-1))
        value = chain_log_prob(torch.zeros(2).log_softmax(0), change.log_softmax(1), log_emission).sum()
        optimizer.zero_grad()
        (-value).backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] > values[0] + 300
    means = network(u).detach().sort(1).values
    truth = torch.stack([-(1 + u[:, 0] ** 2), 1 + u[:, 0] ** 2], 1)
    assert (means - truth).abs().mean() < 0.15


def test_gradient_ascent_ends_at_the_optimum_of_em():
    rng = np.random.default_rng(0)
    state = np.arange(120) // 15 % 2
    x = rng.normal(8.0 * state, 1.0 + state)  # so far apart that there is one optimum
    model = HiddenMarkov(Normal(), inference=EM(max_iter=2000, tol=1e-13), smoothing=0.0, random_state=0).fit(x)
    start = [torch.zeros(2), torch.zeros(2, 2), torch.tensor([0.5, 7.5]), torch.zeros(2)]
    params = [value.double().requires_grad_() for value in start]
    data = torch.from_numpy(x).unsqueeze(-1)
    optimizer = torch.optim.LBFGS(params, max_iter=500, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def log_prob():
        initial, transition, mean, log_scale = params
        log_emission = torch.distributions.Normal(mean, log_scale.exp()).log_prob(data)
        return chain_log_prob(initial.log_softmax(0), transition.log_softmax(1), log_emission).sum()

    def closure():
        optimizer.zero_grad()
        loss = -log_prob()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert log_prob().item() == pytest.approx(model.log_likelihood_, abs=1e-4)
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(params[2].detach().numpy(), model.means_[order, 0], atol=1e-3)
    transition = params[1].detach().softmax(1).numpy()
    np.testing.assert_allclose(transition, model.transition_[order][:, order], atol=1e-3)


def test_shapes_and_lengths_are_checked():
    initial, transition, emission = scores(0, 3, 5)
    with pytest.raises(DataError, match=r"\(K,\), \(K, K\) and \(T, K\); found \(2,\), \(3, 3\), \(5, 3\)"):
        chain_log_prob(initial[:2], transition, emission)
    with pytest.raises(DataError, match="lengths sum to 4, but there are 5 rows"):
        chain_log_prob(initial, transition, emission, [2, 2])
    with pytest.raises(DataError, match=r"sequence 1 is empty: lengths\[1\] = 0"):
        offsets_of([5, 0], 5)
    with pytest.raises(DataError, match="lengths must be integers"):
        offsets_of([2.5, 2.5], 5)


def test_sampled_chains_have_the_frequencies_of_their_matrix(seed):
    """200,000 moves: a frequency deviates by more than 5 standard errors with probability below 1e-6."""
    transition = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.4, 0.6]])
    uniform = np.random.default_rng(seed).random((2000, 101))
    path = sample_states(np.array([0.3, 0.0, 0.7]), transition, uniform)
    counts = np.zeros((3, 3))
    np.add.at(counts, (path[:, :-1].ravel(), path[:, 1:].ravel()), 1)
    total = counts.sum(1, keepdims=True)
    error = np.sqrt(transition * (1 - transition) / total)
    assert (np.abs(counts / total - transition) <= 5 * error).all()
    assert abs((path[:, 0] == 0).mean() - 0.3) < 5 * np.sqrt(0.21 / 2000)
    assert not (path[:, 0] == 1).any()
