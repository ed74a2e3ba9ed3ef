"""PGD beside FGSM and the closed form, in many columns: no step is worse than the first, and that is FGSM's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier
from likely.robust import FGSM, PGD, Linear, attack

NORMS = (1, 2, math.inf)
RADII = {1: 1.0, 2: 0.6, math.inf: 0.1}


def task(seed, columns=40):
    """Two labels that hang on two of many columns, and a linear model of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, columns))
    y = (3 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=100) > 0).astype(int)
    return Classifier(prior="normal(0.3)").fit(X, y), X, y


def random_net(seed, columns=40):
    """A network with random weights, in float64, and rows in the unit cube with its own answers."""
    generator = torch.Generator().manual_seed(seed % 2**31)
    net = nn.Sequential(nn.Linear(columns, 32), nn.ReLU(), nn.Linear(32, 3)).double().requires_grad_(False)
    for weight in net.parameters():
        weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / weight.shape[-1] ** 0.5)
    x = torch.rand(60, columns, generator=generator, dtype=torch.float64)
    x[:, ::3] = x[:, ::3].round()  # a third of the numbers are at a bound, as pixels are
    return net, x, net(x).argmax(1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("steps", [1, 10])
def test_on_two_linear_classes_it_is_the_closed_form(seed, norm, steps):
    """One gradient holds everywhere, so that the best point of the ball is that of the first step."""
    model, X, y = task(seed)
    exact = attack(model, X, y, Linear(radius=RADII[norm], norm=norm))
    for method in (FGSM(RADII[norm], norm), PGD(RADII[norm], norm, steps=steps)):
        np.testing.assert_array_equal(attack(model, X, y, method).success, exact.success)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)], ids=["free", "bounded"])
def test_no_row_is_further_from_being_fooled_than_by_fgsm(seed, norm, bounds):
    net, x, y = random_net(seed)

    def margins(found):
        logits = net(found.perturbed)
        own = logits.gather(1, y[:, None])
        return (logits - own).scatter(1, y[:, None], -math.inf).amax(1)

    radius = RADII[norm]
    one, many = (attack(net, x, y, method, bounds=bounds) for method in (FGSM(radius, norm), PGD(radius, norm)))
    assert not (one.success & ~many.success).any()
    left = torch.from_numpy(~many.success)
    assert bool((margins(many)[left] >= margins(one)[left] - 1e-12).all())
    assert (many.size(norm) <= radius * (1 + 1e-12)).all()


def test_steps_in_the_1_norm_gain_much_on_the_first(seed):
    """Of rows that a search over 200 steps fools in the 1-norm, 10 steps fool nine of ten; FGSM alone does not."""
    net, x, y = random_net(seed)
    methods = (FGSM(1.5, 1), PGD(1.5, 1, steps=10), PGD(1.5, 1, steps=200))
    rates = [attack(net, x, y, method, bounds=(0, 1)).rate for method in methods]
    assert rates[0] <= rates[1]
    assert rates[1] >= 0.9 * rates[2]


def test_the_step_size_is_a_fraction_of_the_way_to_a_corner_in_the_1_norm(seed):
    """Whole steps end at corners of the ball: one entry moves, by the radius; half steps stay inside it."""
    net, x, y = random_net(seed)
    whole = attack(net, x, y, PGD(0.01, 1, steps=5, step_size=1.0))
    changed = (whole.perturbed != x).sum(1)
    assert bool((changed[~whole.success] <= 1).all())
    half = attack(net, x, y, PGD(0.01, 1, steps=5, step_size=0.005))
    assert (half.l1 <= 0.01 * (1 + 1e-9)).all()
