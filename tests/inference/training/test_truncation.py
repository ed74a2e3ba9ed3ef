"""Truncated back-propagation through time: values stay, gradients are cut, and soft cuts have no bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Regressor
from likely.core.errors import SpecError, TrainingError
from likely.core.spec import Spec
from likely.inference import MAP, Ensemble, Inference
from likely.inference.training.truncation import Truncation, truncated
from likely.networks import GRU, LSTM, MLP, RNN
from likely.optim import SGD

KINDS = ("fixed", "hard", "soft")
NETWORKS = (RNN, GRU, LSTM)
T = 9


def made(network, seed=0, **arguments):
    torch.manual_seed(seed)
    return network(3, **arguments).build((T, 2), 1).double(), torch.randn(4, T, 2).double()


def slope(net, x, truncation=None):
    """∂ Σ η² / ∂θ as one vector."""
    with truncated(net, truncation):
        gradients = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    return torch.cat([part.flatten() for part in gradients])


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_values_never_change(network, kind, bidirectional):
    net, x = made(network, layers=2, bidirectional=bidirectional, output="each")
    whole = net(x)
    with truncated(net, Truncation(2, kind)):
        torch.testing.assert_close(net(x), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_cut_stops_the_gradient(network):
    """With cuts every 4 steps the answer at the last step of 9 depends on the last run only: step 9."""
    net, x = made(network)
    x.requires_grad_()
    with truncated(net, Truncation(4)):
        (gradient,) = torch.autograd.grad(net(x).sum(), x)
    assert bool((gradient[:, :8] == 0).all())
    assert bool((gradient[:, 8] != 0).all())


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", ["fixed", "hard"])
def test_one_run_is_the_whole_gradient(network, kind):
    net, x = made(network, output="mean")
    torch.testing.assert_close(slope(net, x, Truncation(10**9, kind)), slope(net, x))


@pytest.mark.parametrize("network", NETWORKS)
def test_hard_cuts_are_fixed_ones_where_runs_are_the_same(network, monkeypatch):
    net, x = made(network, output="mean")
    fixed = slope(net, x, Truncation(3))
    assert not torch.allclose(fixed, slope(net, x))
    draws = torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # above 1 − 1/3 before steps 4 and 7: a cut
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: draws)
    assert Truncation(3, "hard").runs(T) == Truncation(3).runs(T)
    torch.testing.assert_close(slope(net, x, Truncation(3, "hard")), fixed)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_mean_of_soft_cuts_is_the_whole_gradient(network, seed):
    """The means over 300 draws of up to 100 numbers are within 6 standard errors: a false alarm in 1 of 10⁶ seeds."""
    net, x = made(network, seed, output="mean")
    whole = slope(net, x)
    soft = torch.stack([slope(net, x, Truncation(5, "soft")) for _ in range(300)])
    error = soft.std(0) / len(soft) ** 0.5
    assert bool(((soft.mean(0) - whole).abs() <= 6 * error + 1e-12).all())
    assert bool((error > 0).any())


def test_hard_cuts_have_a_bias_that_soft_ones_have_not(seed):
    """The same test sees what hard cuts leave out, with any seed: it has the power to fail."""
    net, x = made(LSTM, seed, output="mean")
    whole = slope(net, x)
    hard = torch.stack([slope(net, x, Truncation(5, "hard")) for _ in range(300)])
    error = hard.std(0) / len(hard) ** 0.5
    assert bool(((hard.mean(0) - whole).abs() > 6 * error + 1e-12).any())


def test_lengths_of_hard_runs_are_geometric(seed):
    """Mean k and P(length = 1) = 1/k, within 5 standard errors of 20 000 steps (false alarm below 1 in 10⁵)."""
    torch.manual_seed(seed)
    lengths = np.array([length for length, _ in Truncation(5, "hard").runs(20_000)])
    assert lengths.sum() == 20_000
    assert abs(lengths.mean() - 5) < 5 * lengths.std() / len(lengths) ** 0.5
    assert abs((lengths == 1).mean() - 0.2) < 5 * (0.16 / len(lengths)) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_training_uses_it_and_then_forgets_it(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, T, 2))
    y = X.sum((1, 2))
    fits = {
        cut: Regressor(network=GRU(3), inference=MAP(SGD(0.1), epochs=3, truncate=cut), random_state=0).fit(X, y)
        for cut in (None, Truncation(3, kind))
    }
    cut_short, whole = (fits[cut].predict(X) for cut in (Truncation(3, kind), None))
    assert not np.allclose(cut_short, whole)
    layer = fits[Truncation(3, kind)].posterior_.module.network.layers[0]
    assert layer.truncation is None
    again = Regressor(
        network=GRU(3), inference=MAP(SGD(0.1), epochs=3, truncate=Truncation(3, kind)), random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), cut_short)


def test_it_is_reset_when_training_fails():
    net, _ = made(GRU)

    def fail():
        with truncated(net, Truncation(3)):
            assert net.layers[0].truncation == Truncation(3)
            raise TrainingError("away")

    with pytest.raises(TrainingError, match="away"):
        fail()
    assert net.layers[0].truncation is None


def test_evaluation_is_not_cut():
    net, x = made(RNN, output="mean")
    net.eval()
    torch.testing.assert_close(slope(net, x, Truncation(1)), slope(net, x))


def test_members_of_an_ensemble_are_each_cut_at_random():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, T, 2))
    by = MAP(epochs=2, truncate=Truncation(3, "hard"))
    model = Regressor(network=RNN(2), inference=Ensemble(2, by=by), random_state=0).fit(X, X[:, -1, 0])
    assert len(model.posterior_) == 2


def test_a_network_without_time_refuses_it():
    with pytest.raises(SpecError, match="the network has no layer whose gradients go back step by step"):
        Regressor(network=MLP((3,)), inference=MAP(epochs=1, truncate=5)).fit(np.ones((4, 2)), np.arange(4.0))


def test_a_layer_of_ones_own_with_the_attribute_is_told():
    layer = nn.Linear(2, 2)
    layer.truncation = None
    with truncated(layer, Truncation(7)):
        assert layer.truncation == Truncation(7)


def test_arguments_text_and_json():
    assert MAP(truncate=20).truncate == Truncation(20) == Truncation()
    assert Inference.parse("map(truncate=truncation(steps=5, kind=soft))") == MAP(truncate=Truncation(5, "soft"))
    assert Spec.from_json(MAP(truncate=7).to_json()) == MAP(truncate=7)
    for arguments, message in (
        ({"steps": 0}, "steps must be an integer, 1 or more"),
        ({"steps": 1, "kind": "soft"}, "steps must be an integer, 2 or more"),
        ({"steps": 2.5}, "steps must be an integer"),
        ({"kind": "random"}, "kind must be one of fixed, hard, soft"),
    ):
        with pytest.raises(SpecError, match=message):
            Truncation(**arguments)
    with pytest.raises(SpecError, match="truncate"):
        MAP(truncate=0.5)
