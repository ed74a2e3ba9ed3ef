"""Regions are exact: the function is linear in each, they tile the figure, and their number obeys the bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from likely import Classifier
from likely.core.errors import DataError, SpecError
from likely.inference import MAP
from likely.networks import MLP
from likely.networks.layers import BatchNorm
from likely.theory.linear_regions import montufar, regions_in_plane, regions_on_line, zaslavsky

VARIANTS = [
    {},
    {"activation": "leaky_relu"},
    {"residual": "add"},
    {"residual": "zero"},
    {"residual": "dense"},
    {"residual": "preactivation"},
    {"norm": "batch"},
    {"norm": "weight", "dropout": 0.5},
]


def network(hidden, inputs=2, outputs=1, seed=0, **choice):
    torch.manual_seed(seed)
    net = MLP(hidden, **choice).build((inputs,), outputs).double().eval()
    for layer in net.modules():
        if isinstance(layer, BatchNorm):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2.0)
            nn.init.normal_(layer.weight)
    return net


def answers(net, x):
    with torch.no_grad():
        return net(torch.as_tensor(x)).numpy()


def area(polygon):
    x, y = polygon.T
    return 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))


def inside(polygon, generator, count=4):
    """Random points of a convex polygon: averages of its corners."""
    return generator.dirichlet(np.ones(len(polygon)), count) @ polygon


@pytest.mark.parametrize("choice", VARIANTS)
def test_the_function_is_linear_inside_every_region_of_a_line(choice):
    net = network((9, 7, 9), inputs=3, outputs=2, **choice)
    start, stop = np.array([-3.0, 1.0, 2.0]), np.array([2.0, 2.0, -3.0])
    regions = regions_on_line(net, start, stop)
    assert len(regions) > 3
    t = np.sort(np.concatenate([np.linspace(0, 1, 501), regions.breakpoints]))
    np.testing.assert_allclose(regions(t), answers(net, start + t[:, None] * (stop - start)), atol=1e-8)
    # the slope does change at each breakpoint
    assert (np.abs(np.diff(regions.slopes, axis=0)).max(1) > 1e-9).all()
    np.testing.assert_allclose(regions.points, start + regions.breakpoints[:, None] * (stop - start))


@pytest.mark.parametrize("choice", VARIANTS)
def test_the_function_is_linear_inside_polygons_that_tile_the_window(choice):
    net = network((7, 6), outputs=2, **choice)
    regions = regions_in_plane(net, ((-2.0, 3.0), (-1.0, 2.0)))
    generator = np.random.default_rng(0)
    assert len(regions) > 5
    for polygon, slope, offset in zip(regions.polygons, regions.slopes, regions.offsets, strict=True):
        points = inside(polygon, generator)
        np.testing.assert_allclose(points @ slope.T + offset, answers(net, regions.points(points)), atol=1e-8)
    areas = np.array([area(polygon) for polygon in regions.polygons])
    assert (areas > 0).all()
    assert areas.sum() == pytest.approx(15.0, rel=1e-9)


def test_the_kinks_of_a_shallow_network_are_where_its_units_are_zero():
    """w t + b = 0 at t = −b/w."""
    net = network((12,), inputs=1)
    zeros = np.sort((-net[0].bias / net[0].weight[:, 0]).detach().numpy())
    regions = regions_on_line(net, -100.0, 100.0)
    np.testing.assert_allclose(regions.points[:, 0], zeros, atol=1e-11)
    assert len(regions) == 13


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 10**6))
def test_a_shallow_network_of_d_units_has_at_most_d_plus_1_regions(units, inputs, seed):
    net = network((units,), inputs, seed=seed)
    generator = np.random.default_rng(seed)
    regions = regions_on_line(net, 10 * generator.normal(size=inputs), 10 * generator.normal(size=inputs))
    assert len(regions) <= units + 1


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(0, 10**6))
def test_counts_are_never_above_the_bounds(widths, seed):
    net = network(tuple(widths), seed=seed)
    assert len(regions_in_plane(net, ((-9, 9), (-9, 9))).polygons) <= montufar(tuple(widths), 2).most
    assert len(regions_on_line(net, [-9.0, 4.0], [9.0, -2.0])) <= montufar(tuple(widths), 1).most


@pytest.mark.parametrize("units", [1, 2, 5, 9])
def test_one_layer_in_general_position_reaches_zaslavskys_number(units):
    for seed in range(3):
        net = network((units,), seed=seed)
        nn.init.normal_(net[2].weight)
        regions = regions_in_plane(net, ((-1e4, 1e4), (-1e4, 1e4)))
        assert len(regions) == len(regions.polygons) == zaslavsky(units, 2) == 1 + units + units * (units - 1) // 2


def test_zaslavskys_number_obeys_its_recursion():
    """A new hyperplane cuts as many parts as the others cut it into: r(m, n) = r(m − 1, n) + r(m − 1, n − 1)."""
    for m, n in itertools.product(range(1, 9), range(1, 6)):
        assert zaslavsky(m, n) == zaslavsky(m - 1, n) + zaslavsky(m - 1, n - 1)
        assert zaslavsky(m, n) == sum(math.comb(m, i) for i in range(n + 1))


def sawtooth(width, depth):
    """Each layer folds [0, 1] `width` times onto itself: slopes ±width, so that depth multiplies the teeth."""
    layers = []
    knots = torch.arange(width, dtype=torch.float64) / width
    signs = torch.tensor([1.0] + [2.0 * (-1) ** k for k in range(1, width)], dtype=torch.float64)
    for _ in range(depth):
        first, last = nn.Linear(1, width).double(), nn.Linear(width, 1).double()
        with torch.no_grad():
            first.weight.fill_(1.0)
            first.bias.copy_(-knots)
            last.weight.copy_(width * signs)
            last.bias.zero_()
        layers += [first, nn.ReLU(), last]
    return nn.Sequential(*layers)


@pytest.mark.parametrize(("width", "depth"), [(2, 1), (2, 6), (3, 4), (5, 3)])
def test_folding_multiplies_regions(width, depth):
    """width^depth teeth on [0, 1], at multiples of width^−depth, and one more region to the left."""
    regions = regions_on_line(sawtooth(width, depth), -1.0, 1.0)
    teeth = width**depth
    np.testing.assert_allclose(regions.points[:, 0], np.arange(teeth) / teeth, atol=1e-9)
    np.testing.assert_allclose(np.abs(regions.slopes[1:, 0]), 2.0 * teeth)


@pytest.mark.parametrize(("width", "depth"), [(2, 1), (2, 6), (3, 4), (5, 3)])
def test_montufars_number_is_reached(width, depth):
    """A last layer whose kinks all lie inside (0, 1) has width + 1 pieces in each of the width^(depth − 1) folds."""
    last = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, 1)).double()
    sides = torch.tensor([-1.0] + [1.0] * (width - 1), dtype=torch.float64)  # so that neither end is flat
    with torch.no_grad():
        last[0].weight.copy_(sides.unsqueeze(1))
        last[0].bias.copy_(-sides * torch.arange(1, width + 1) / (width + 1))
        last[2].weight.fill_(1.0)
    net = nn.Sequential(*sawtooth(width, depth - 1), *last)
    limits = montufar((width,) * depth, 1)
    assert len(regions_on_line(net, 0.0, 1.0)) == limits.least == width ** (depth - 1) * (width + 1)
    assert len(regions_on_line(net, -9.0, 9.0)) <= limits.most == (width + 1) ** depth


def test_montufars_bounds_are_the_formulas():
    assert montufar((8,), 2) == (zaslavsky(8, 2), zaslavsky(8, 2))
    assert montufar((4, 6), 2) == ((4 // 2) ** 2 * (1 + 6 + 15), (1 + 4 + 6) * (1 + 6 + 15))
    assert montufar((1, 6), 2).most == 2 * 7  # after one unit there is one dimension left
    assert montufar((1, 6), 2).least == 7
    for widths in itertools.product(range(1, 5), repeat=2):
        for inputs in range(1, 5):
            least, most = montufar(widths, inputs)
            assert 1 <= least <= most


def test_deep_networks_have_more_regions_than_shallow_ones():
    assert montufar((8,) * 4, 1).least > 100 * montufar((32,), 1).most
    assert len(regions_on_line(sawtooth(4, 4), -1.0, 1.0)) > len(regions_on_line(network((16,), 1), -9.0, 9.0))


def test_what_changes_nothing_is_no_border():
    """A unit that no one listens to, two kinks that cancel, and everything before a layer that is off."""
    plain = network((6,), 1)
    with torch.no_grad():
        plain[2].weight[0, 2] = 0.0
    assert len(regions_on_line(plain, -100.0, 100.0)) == 6
    with torch.no_grad():
        plain[0].weight[1], plain[0].bias[1] = plain[0].weight[0], plain[0].bias[0]
        plain[2].weight[0, 1] = -plain[2].weight[0, 0]
    assert len(regions_on_line(plain, -100.0, 100.0)) == 4
    dead = network((6, 5))
    with torch.no_grad():
        dead[2].bias.fill_(-1e6)
    regions = regions_in_plane(dead, ((-5, 5), (-5, 5)))
    assert len(regions.polygons) > 5
    assert len(regions) == 1


def test_equal_functions_far_apart_are_different_regions():
    plane = nn.Sequential(nn.Linear(2, 4).double(), nn.ReLU(), nn.Linear(4, 1).double())
    with torch.no_grad():
        plane[0].weight.copy_(torch.tensor([[1.0, 0.0]] * 4))
        plane[0].bias.copy_(torch.tensor([0.0, -1.0, -2.0, -3.0]))
        plane[2].weight.copy_(torch.tensor([[1.0, -1.0, 1.0, -1.0]]))
    # 0, ramp, 1, ramp, 2 along u
    assert len(regions_in_plane(plane, ((-1, 4), (-1, 1)))) == 5
    with torch.no_grad():
        plane[2].weight.copy_(torch.tensor([[1.0, -2.0, 1.0, 0.0]]))
    # 0, up, down, 0 again: the two that are 0 do not touch
    assert len(regions_in_plane(plane, ((-1, 4), (-1, 1)))) == 4


def test_a_line_in_a_plane_has_the_regions_that_it_meets():
    """Through a plane in five dimensions."""
    net = network((8, 8), inputs=5)
    generator = np.random.default_rng(1)
    origin, axes = generator.normal(size=5), generator.normal(size=(2, 5))
    plane = regions_in_plane(net, ((-2, 2), (-2, 2)), origin=origin, axes=axes)
    a, b = np.array([-2.0, -0.3]), np.array([2.0, 0.9])
    line = regions_on_line(net, *plane.points([a, b]))
    middles = np.convolve(np.concatenate([[0], line.breakpoints, [1]]), [0.5, 0.5], "valid")
    met = []
    for t in middles:
        point = a + t * (b - a)
        for polygon, number in zip(plane.polygons, plane.region, strict=True):
            side, next_side = polygon, np.roll(polygon, -1, 0)
            edge, to = next_side - side, point - side
            if (edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0] > 0).all():
                met.append(number)
    assert len(met) == len(line)
    assert len(set(met)) == len(line)


def test_fitted_models_have_regions():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = Classifier(network=MLP((6,)), inference=MAP(epochs=5), random_state=0).fit(X, X[:, 0] > 0)
    regions = regions_in_plane(model)
    middle = np.stack([polygon.mean(0) for polygon in regions.polygons])
    eta = (regions.slopes[:, 0] * middle).sum(1) + regions.offsets[:, 0]
    np.testing.assert_allclose(1 / (1 + np.exp(-eta)), model.predict_proba(middle)[:, 1], atol=1e-5)


def test_errors_say_what_would_do():
    with pytest.raises(SpecError, match="Tanh is not known to be piecewise linear; use linear layers, relu"):
        regions_on_line(network((3,), 1, activation="tanh"), 0.0, 1.0)
    with pytest.raises(DataError, match="start and stop must be two different finite points"):
        regions_on_line(network((3,), 1), 1.0, 1.0)
    with pytest.raises(DataError, match="The network takes 3 inputs; the points have 2"):
        regions_in_plane(network((3,), 3))
    with pytest.raises(DataError, match=r"window=.* must be \(\(u₀, u₁\), \(v₀, v₁\)\)"):
        regions_in_plane(network((3,)), ((1, 0), (0, 1)))
    with pytest.raises(DataError, match="must span a plane"):
        regions_in_plane(network((3,), 3), origin=np.zeros(3), axes=np.ones((2, 3)))
    for widths in ((), (3, 0)):
        with pytest.raises(SpecError, match="widths=0 must be the sizes of hidden layers: an integer, 1 or more"):
            montufar(widths, 2)
    with pytest.raises(SpecError, match="inputs=0 must be a number of columns"):
        montufar((3,), 0)
