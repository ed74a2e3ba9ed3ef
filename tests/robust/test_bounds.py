"""Lipschitz and interval bounds: exact where a network is linear, and never contradicted."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier, priors
from likely.core.errors import DataError, SpecError
from likely.inference import MAP, Ensemble, MCDropout
from likely.networks import MLP, ConvNet
from likely.networks.layers.activation import ACTIVATIONS
from likely.networks.layers.conv import Conv
from likely.optim import Adam
from likely.robust import PGD, attack, certify_by_intervals, certify_by_lipschitz, lipschitz
from likely.robust.layers import Bounded, known

BOUNDED = [name for name in ACTIVATIONS if name != "sin"]


@pytest.fixture(scope="module")
def images():
    """Two kinds of small images: light on the left, or on the right."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = 0.3 * rng.random((60, 1, 6, 6))
    X[y == 0, :, :, :3] += 0.6
    X[y == 1, :, :, 3:] += 0.6
    return X, y


def fitted(network, X, y, inference=None, **more):
    inference = inference or MAP(Adam(0.02), epochs=10, batch_size=30)
    return Classifier(network=network, inference=inference, random_state=0, **more).fit(X, y)


@pytest.mark.parametrize("name", BOUNDED)
def test_activations_keep_to_their_slopes_and_intervals(name):
    layer = ACTIVATIONS[name]().double()
    grid = torch.linspace(-8, 8, 16_001, dtype=torch.float64)
    slopes = (layer(grid)[1:] - layer(grid)[:-1]).abs() / 1e-3
    bound = known(layer).length(layer, torch.Size([1]))
    assert float(slopes.max()) <= bound * (1 + 1e-9)
    assert float(slopes.max()) >= 0.999 * bound
    starts = torch.linspace(-4, 3, 50, dtype=torch.float64)
    for width in (0.1, 1.0, 3.0):
        low, high = known(layer).interval(layer, Bounded(starts, starts + width))
        values = layer(starts.unsqueeze(1) + width * torch.linspace(0, 1, 1001, dtype=torch.float64))
        torch.testing.assert_close(low, values.amin(1), rtol=0, atol=1e-5)
        torch.testing.assert_close(high, values.amax(1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("padding", ["zero", "valid", "circular"])
@pytest.mark.parametrize(("stride", "dilation", "dims"), [(1, 1, 2), (2, 1, 2), (1, 2, 1)])
def test_the_length_of_a_convolution_is_above_its_largest_singular_value(padding, stride, dilation, dims):
    torch.manual_seed(0)
    layer = Conv(2, 3, 3, dims=dims, stride=stride, dilation=dilation, padding=padding).double().requires_grad_(False)
    shape = torch.Size([2, *[7] * dims])
    whole = torch.autograd.functional.jacobian(layer, torch.zeros(1, *shape, dtype=torch.float64))
    exact = torch.linalg.matrix_norm(whole.flatten(0, dims + 1).flatten(1), 2).item()
    bound = known(layer).length(layer, shape)
    assert exact <= bound * (1 + 1e-9)
    if padding == "circular" and stride == 1:
        assert bound == pytest.approx(exact)
    elif stride == 1:
        assert bound < 1.6 * exact


def test_one_linear_map_is_exact(clouds, linear):
    """The radius of softmax regression is its distance to the nearest boundary, in either norm."""
    X, _ = clouds
    place = np.searchsorted(linear.classes_, linear.predict(X))
    logits = X @ linear.coef_.T + linear.intercept_
    for certificate, dual in ((certify_by_lipschitz(linear, X), 2), (certify_by_intervals(linear, X), 1)):
        gaps = np.linalg.norm(linear.coef_[place][:, None] - linear.coef_, dual, axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = (logits[np.arange(len(X)), place][:, None] - logits) / gaps
        distance[np.arange(len(X)), place] = math.inf
        np.testing.assert_allclose(certificate.radius, distance.min(1), rtol=1e-4, atol=1e-4)


NETWORKS = {
    "dense": MLP((16, 16)),
    "smooth": MLP((8,), activation="gelu", dropout=0.1),
    "normed": MLP((8,), norm="batch", activation="tanh"),
    "weight norm": MLP((8,), norm="weight"),
    "conv": ConvNet((4, 4), kernel=3, hidden=(8,)),
    "strided": ConvNet((4,), kernel=3, downsample="stride", norm="batch", activation="elu"),
    "means": ConvNet((4,), kernel=3, downsample="mean", padding="circular"),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("certificate", "norm"), [(certify_by_lipschitz, 2), (certify_by_intervals, math.inf)])
def test_no_attack_wins_inside_a_certified_radius(images, name, certificate, norm):
    X, y = images
    model = fitted(NETWORKS[name], X, y)
    found = certificate(model, X)
    assert (found.radius > 0).mean() > 0.9
    np.testing.assert_array_equal(found.predicted, model.predict(X))
    for radius in np.quantile(found.radius, [0.1, 0.5, 0.9]):
        rows = found.radius >= radius
        method = PGD(0.999 * radius, norm, steps=10)
        assert not attack(model, X[rows], found.predicted[rows], method, bounds=(-9, 9)).success.any()
    far = PGD(min(60 * radius + 0.5, 15.0), norm, steps=20)
    assert attack(model, X, found.predicted, far, bounds=(-9, 9)).success.any()  # the attack is not a weak one


def test_intervals_hold_what_networks_give(images):
    """A larger ball certifies less, and what is certified within a radius is so to the last bit of that number."""
    X, y = images
    model = fitted(NETWORKS["conv"], X, y)
    radii = [0.001, 0.01, 0.1]
    certified = [certify_by_intervals(model, X, radius).accuracy(y, radius) for radius in radii]
    assert certified == sorted(certified, reverse=True)
    largest = certify_by_intervals(model, X).radius
    for radius in radii:
        found = certify_by_intervals(model, X, radius)
        np.testing.assert_array_equal(~found.abstained, largest >= radius)
        np.testing.assert_array_equal(found.radius, np.where(largest >= radius, radius, 0.0))
        assert found.accuracy(y, radius) == np.mean((found.predicted == y) & (largest >= radius))


def test_a_row_is_certified_by_itself(images, clouds, linear):
    """Neither the radius nor whether it may be asked for depends on the rows beside it, or on the units of X."""
    X, y = images
    model = fitted(NETWORKS["conv"], X, y)
    together = certify_by_intervals(model, X).radius
    alone = np.concatenate([certify_by_intervals(model, X[row : row + 1]).radius for row in range(5)])
    np.testing.assert_allclose(alone, together[:5], rtol=1e-6)
    assert not certify_by_intervals(model, X[:1], 0.5 * together[0]).abstained.any()
    certify_by_intervals(linear, [[5.0, 5.01, 5.02, 5.03]], 0.3)
    rows = X[:, 0, 0]
    small, large = (
        certify_by_intervals(Classifier(prior=priors.Normal(1 / unit)).fit(unit * rows, y), unit * rows)
        for unit in (1e-3, 1e3)
    )
    np.testing.assert_allclose(1e6 * small.radius, large.radius, rtol=1e-3)


def test_the_length_bounds_every_pair_of_rows(images):
    X, y = images
    for network in (*(NETWORKS[name] for name in ("dense", "conv", "strided")), ConvNet((4,), pool="mean")):
        model = fitted(network, X, y, likelihood="categorical(2)")
        eta = model.posterior_.eta(torch.from_numpy(X))[0].double()
        gaps = torch.cdist(eta, eta) / torch.cdist(*[torch.from_numpy(X).flatten(1)] * 2).clamp_min(1e-9)
        assert float(gaps.max()) <= lipschitz(model) * (1 + 1e-5)


def test_every_member_of_an_ensemble_has_to_hold(images):
    X, y = images
    model = fitted(MLP((8,)), X, y, Ensemble(3, by=MAP(Adam(0.02), epochs=10)))
    found = certify_by_lipschitz(model, X)
    assert found.radius.max() > 0
    strongest = attack(model, X, found.predicted, PGD(float(found.radius.min()), 2, steps=20), bounds=(-9, 9))
    assert not strongest.success.any()
    assert lipschitz(model) > 0


def test_a_member_without_weight_has_no_say(images):
    X, y = images
    model = fitted(MLP((6,)), X, y, Ensemble(2, by=MAP(epochs=1)))
    of_both = lipschitz(model)
    alone = []
    for weights in ([1.0, 0.0], [0.0, 1.0]):
        model.posterior_.weights = torch.tensor(weights)
        alone.append(lipschitz(model))
    assert min(alone) < max(alone) == of_both


def test_torch_modules_are_certified_too():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 3)
    ).eval()
    X = np.random.default_rng(0).random((5, 1, 6, 6)).astype(np.float32)
    for certificate, norm in ((certify_by_lipschitz, 2), (certify_by_intervals, math.inf)):
        found = certificate(net, X)
        assert (found.radius > 0).all()
        for row, label, radius in zip(X, found.predicted, found.radius, strict=True):
            method = PGD(0.999 * radius, norm, steps=20)
            assert not attack(net, row[None], [label], method, bounds=(-9, 9)).success.any()


def test_what_is_not_known_is_refused_by_name(images, clouds):
    X, y = images
    with pytest.raises(SpecError, match="Bounds of a network with a Residual are not known; they are of "):
        certify_by_lipschitz(fitted(MLP((8,), residual="add"), X.reshape(60, -1), y), X.reshape(60, -1))
    with pytest.raises(SpecError, match="ends with ReLU"):
        certify_by_intervals(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), clouds[0], 0.1)
    with pytest.raises(SpecError, match="padding must be of zeros or circular"):
        lipschitz(fitted(ConvNet((4,), kernel=3, padding="reflect"), X, y))
    dropout = fitted(MLP((4,), dropout=0.2), X, y, MCDropout(3, by=MAP(epochs=1)))
    with pytest.raises(SpecError, match="not for a dropout posterior: use certify"):
        certify_by_intervals(dropout, X)
    with pytest.raises(SpecError, match="Bounds are known for a Classifier or a module; found function"):
        certify_by_intervals(lambda x: x, X, 0.1)
    with pytest.raises(SpecError, match="not fitted yet"):
        certify_by_intervals(Classifier(), X, 0.1)
    with pytest.raises(DataError, match="radius=300 is beyond the range of X"):
        certify_by_intervals(fitted(MLP((4,)), X, y), X, 300.0)
    for radius in ("a", -1, math.inf, True):
        with pytest.raises(SpecError, match="must be a positive number, in the units of X, or None"):
            certify_by_intervals(nn.Linear(4, 2), clouds[0], radius)
    with pytest.raises(SpecError, match="lipschitz needs a fitted Classifier, or a module and the shape of a row"):
        lipschitz(nn.Linear(2, 2))
