"""Inputs in units of the training rows: which columns get which centre and scale, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.data.graph import Graph, Graphs
from likely.data.rows import Ragged
from likely.networks.layers import Standardise, statistics
from likely.networks.layers.graph import normalised_adjacency

RNG = np.random.default_rng(0)


def column(values) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float64)).reshape(-1, 1)


def standard(x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """A column as the network sees it."""
    units = statistics(x, tuple(x.shape[1:]), weight)
    return x if units is None else Standardise(*units)(x)


def test_plain_columns_have_mean_0_and_deviation_1():
    x = torch.from_numpy(RNG.normal((1e5, -3.0, 0.0), (1e3, 1e-4, 7.0), (500, 3)))
    z = standard(x)
    assert torch.allclose(z.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-9)
    assert torch.allclose(z.std(0, unbiased=False), torch.ones(3, dtype=torch.float64))


def test_indicators_stay_and_constants_become_0():
    binary, constant = column(RNG.integers(0, 2, 50)), column(np.full(50, 1e7))
    assert statistics(binary, (1,)) is None
    z = standard(torch.cat([binary, constant, column(RNG.normal(size=50))], 1))
    assert torch.equal(z[:, :1], binary)
    assert bool((z[:, 1] == 0).all())


def test_rare_values_among_zeros_are_as_large_as_an_indicator():
    values = np.zeros(1000)
    values[:3] = 200.0
    assert torch.equal(standard(column(values)), column(values / 200.0))
    many = np.where(RNG.random(1000) < 0.1, RNG.uniform(50, 60, 1000), 0.0)
    z = standard(column(many))
    assert bool((z[many == 0] == 0).all())
    assert torch.allclose(z[many != 0].square().mean(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("outlier", [1e6, -9999.0])
def test_outliers_leave_the_bulk_its_size(outlier):
    values = RNG.normal(50.0, 10.0, 1000)
    values[::200] = outlier
    z = standard(column(values)).ravel()
    bulk = z[values != outlier]
    assert 0.7 < float(bulk.std()) < 1.1
    assert float(z.abs().max()) <= 3.001
    order = np.argsort(values)
    assert bool((z[order].diff() >= 0).all())  # bent, not folded


def test_amounts_over_many_orders_of_magnitude_are_bent():
    values = RNG.lognormal(3.0, 2.0, 2000)
    z = standard(column(values)).ravel()
    assert float(z.abs().max()) <= 3.001
    assert float(z[values < np.quantile(values, 0.75)].std()) > 0.15
    zero_inflated = np.where(RNG.random(2000) < 0.9, 0.0, values)
    z = standard(column(zero_inflated)).ravel()
    assert bool((z[zero_inflated == 0] == 0).all())
    assert float(z.max()) <= 3.001


@pytest.mark.parametrize("values", [RNG.normal(size=500), RNG.exponential(size=500), RNG.uniform(size=500)])
def test_ordinary_tails_are_not_bent(values):
    units = statistics(column(values), (1,))
    assert units is not None
    assert units.bend is None


@pytest.mark.parametrize("kind", ["normal", "heavy", "sparse"])
def test_a_weight_is_a_number_of_copies(kind):
    x = {
        "normal": RNG.normal(5.0, 2.0, 60),
        "heavy": RNG.lognormal(0.0, 4.0, 60),
        "sparse": np.where(RNG.random(60) < 0.8, 0.0, RNG.normal(4.0, 1.0, 60)),
    }[kind]
    counts = RNG.integers(0, 4, 60)
    weighted = statistics(column(x), (1,), torch.from_numpy(counts).double())
    copied = statistics(column(np.repeat(x, counts)), (1,))
    assert weighted is not None
    assert copied is not None
    assert (weighted.bend is None) == (copied.bend is None) == (kind != "heavy")
    for one, other in zip(weighted[:2], copied[:2], strict=True):
        assert torch.allclose(one, other, rtol=1e-9)


def test_channels_steps_and_nodes_share_their_units():
    images = torch.from_numpy(RNG.normal((10.0, -5.0), (3.0, 0.1), (40, 6, 6, 2))).permute(0, 3, 1, 2)
    z = Standardise(*statistics(images, (2, 1, 1)))(images)
    assert torch.allclose(z.mean((0, 2, 3)), torch.zeros(2, dtype=torch.float64), atol=1e-9)
    sequences = Ragged.of([RNG.normal(100.0, 5.0, (length, 2)) for length in (3, 1, 7)])
    z = Standardise(*statistics(sequences, (2,)))(sequences)
    assert torch.equal(z.offsets, sequences.offsets)
    assert torch.allclose(z.features.std(0, unbiased=False), torch.ones(2, dtype=torch.float64))


def test_weights_of_rows_count_at_each_of_their_positions():
    sequences = Ragged.of([np.full((3, 1), 2.0), np.full((1, 1), 10.0)])
    units = statistics(sequences, (1,), torch.tensor([1.0, 3.0]))
    assert units is not None
    assert float(units.centre) == pytest.approx(6.0)


def test_graphs_keep_what_was_made_of_their_edges():
    graphs = Graphs.of([Graph(RNG.normal(5.0, 2.0, (4, 2)), [[0, 1, 2], [1, 2, 3]])])
    before = normalised_adjacency(graphs)
    layer = Standardise(*statistics(graphs, (2,)))
    assert normalised_adjacency(layer(graphs)) is before
    assert torch.allclose(layer(graphs).features.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-9)


def test_large_data_are_sampled_but_no_outlier_is_missed():
    values = RNG.normal(size=(1 << 22) + 5)
    values[3] = 1e9
    units = statistics(column(values), (1,))
    assert units is not None
    assert float(Standardise(*units)(column([1e9])).abs()) <= 3.001
    assert 0.8 < float(units.scale) < 1.2


@pytest.mark.parametrize("other", [0.5, 1e-12, 1 - 1e-12])
def test_a_column_with_one_number_between_0_and_1_is_not_an_indicator(other):
    values = (RNG.random(1000) < 0.7).astype(np.float64)  # mostly zeros would be kept too
    values[17] = other
    assert abs(float(standard(column(values)).mean())) < 1e-9


def test_rows_that_are_standardised_once_are_the_same():
    x = torch.from_numpy(RNG.normal(size=(200, 4)))
    x[:, 1], x[:, 2] = x[:, 1].mul(5).exp(), 3.0
    layer = Standardise(*statistics(x, (4,)))
    assert layer.bend is not None
    torch.testing.assert_close(layer.once(x), layer(x))
    channels = Standardise(layer.centre[:2].reshape(2, 1), layer.scale[:2].reshape(2, 1), layer.bend[:2].reshape(2, 1))
    images = x.reshape(100, 2, 4)
    torch.testing.assert_close(channels.once(images), channels(images))


def limited(x: torch.Tensor) -> Standardise:
    return Standardise(*statistics(x, tuple(x.shape[1:]), limited=True))


def test_a_table_counts_for_a_tenth_beyond_3_past_its_ends():
    x = torch.from_numpy(RNG.normal(50.0, 10.0, (200, 2)))
    plain, layer = Standardise(*statistics(x, (2,))), limited(x)
    assert torch.equal(layer(x), plain(x))
    ends = torch.stack([x.amin(0), x.amax(0)])
    near = ends + 2.9 * plain.scale * torch.tensor([[-1.0], [1.0]])
    assert torch.equal(layer(near), plain(near))
    far = ends + 43.0 * plain.scale * torch.tensor([[-1.0], [1.0]])
    beyond = (layer(far) - plain(ends)).abs()
    assert torch.allclose(beyond, torch.full_like(beyond, 3.0 + 40.0 / 10))
    everywhere = torch.linspace(-1e4, 1e4, 999, dtype=torch.float64).unsqueeze(1).expand(-1, 2)
    assert bool((layer(everywhere).diff(dim=0) > 0).all())


def test_the_limits_are_the_same_in_every_pass():
    x = torch.from_numpy(np.column_stack([RNG.normal(size=300), RNG.lognormal(0.0, 4.0, 300), RNG.integers(0, 2, 300)]))
    layer = limited(x)
    new = torch.cat([x[:5], x[:5] * 1e3, x[:5] - 1e4]).requires_grad_()
    z = layer(new)
    (gradient,) = torch.autograd.grad(z.sum(), new)
    by_hand, derivative = layer.with_derivative(new.detach())
    assert torch.allclose(by_hand, z, rtol=1e-12)
    assert torch.allclose(derivative.expand_as(gradient), gradient, rtol=1e-9)
    assert torch.allclose(layer.once(new.detach()), z, rtol=1e-12)


def test_a_constant_column_of_a_table_says_nothing_of_new_rows_either():
    x = torch.cat([torch.full((20, 1), 7.0), torch.randn(20, 1)], 1).double()
    assert float(limited(x)(torch.tensor([[1e6, 0.0]], dtype=torch.float64))[0, 0]) == pytest.approx(0.0, abs=1e-20)
