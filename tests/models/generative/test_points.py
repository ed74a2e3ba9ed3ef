"""Rows as points: there and back, chances of labels, and a bound on the probability of labels."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
import torch

from likely import Diffusion
from likely.core.errors import DataError
from likely.core.random import isolated
from likely.inference import MAP
from likely.models.generative.observed import columns_of
from likely.models.generative.points import Points
from likely.models.generative.rows import RowForm
from likely.networks import MLP

TABLE = {"kind": ["a", "b", "c", "a", "a", "b"], "size": [1.0, -2.0, 0.5, 3.0, 1.5, 0.0], "yes": [True, False] * 3}


def made(table=TABLE):
    form, x = RowForm.read(None, table)
    points = Points(columns_of("auto", x, form.columns), form.shape).double()
    points.adapt(x, None)
    return points, x


def test_points_come_back_and_have_the_size_of_numbers():
    points, x = made()
    z = points(x)
    assert z.shape == (6, 1 + 3 + 2)
    torch.testing.assert_close(points.inverse(z), x)
    torch.testing.assert_close(points.inverse(z + 0.2 * torch.randn_like(z) * z.new_tensor([0, 1, 1, 1, 1, 1])), x)
    torch.testing.assert_close(z.mean(0), torch.zeros(6, dtype=z.dtype), atol=1e-7, rtol=0)
    variance = z.square().mean(0)
    sizes = torch.stack([variance[0], variance[1:4].mean(), variance[4:].mean()])
    torch.testing.assert_close(sizes, torch.ones(3).double())


def test_what_is_said_of_columns_is_said_of_their_numbers():
    points, _ = made()
    gone = torch.tensor([[True, False, False]])
    assert points.spread(gone).tolist() == [[False, True, True, True, False, False]]


def test_labels_of_noisy_points_follow_from_bayes_rule():
    """p(k | z) ∝ N(z; α c_k, σ²), and the chances of all labels add up to 1."""
    points, x = made({"kind": TABLE["kind"]})
    z = torch.randn(6, 3, dtype=torch.float64)
    alpha, sigma = torch.tensor(0.8).double(), torch.tensor(0.7).double()
    log_probs = torch.stack([points.label_log_prob(z, torch.full_like(x, k), alpha, sigma) for k in range(3)])
    torch.testing.assert_close(log_probs.exp().sum(0), torch.ones(6).double())
    corners = points(torch.arange(3.0).double()[:, None])
    normal = torch.distributions.Normal(alpha * corners[:, None], sigma).log_prob(z).sum(-1)
    torch.testing.assert_close(log_probs, normal.log_softmax(0))


def test_labels_are_drawn_with_their_chances(seed):
    """False alarm below 1e-6 for each label: 5 standard deviations of a frequency; gradients reach the chances."""
    points, _ = made({"kind": TABLE["kind"]})
    chance = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    logits = chance.log().expand(20_000, -1).clone().requires_grad_()
    with isolated(seed):
        new = points.drawn(logits)
    frequency = torch.bincount(points.inverse(new.detach())[:, 0].long(), minlength=3) / len(new)
    assert ((frequency - chance).abs() < 5 * (chance * (1 - chance) / len(new)).sqrt()).all()
    (gradient,) = torch.autograd.grad((new * torch.arange(3.0).double()).sum(), logits)
    assert bool((gradient.abs().sum(0) > 0).all())


def test_a_diffusion_of_labels_bounds_their_probabilities():
    """Σ p(x) = 1 over all cells, so Σ exp(bound) ≤ 1; and what is learned is most of it.

    The bound of a cell has a standard error of about 0.01 by so many draws; the slack is 0.05.
    """
    rng = np.random.default_rng(0)
    first = rng.choice(["a", "b", "c"], 400, p=[0.5, 0.3, 0.2])
    second = np.where(rng.random(400) < 0.9, first == "a", first != "a")
    frame = pl.DataFrame({"first": first, "second": second})
    model = Diffusion(MLP((32, 32)), steps=50, inference=MAP("adam(3e-3)", epochs=150), random_state=0).fit(frame)
    cells = pl.DataFrame(list(itertools.product("abc", [True, False])), schema=["first", "second"], orient="row")
    total = np.exp(model.log_prob(cells, draws=500)).sum()
    assert 0.5 < total < 1.05
    new = model.sample(400, random_state=0)
    agree = (new["second"] == (new["first"] == "a")).mean()
    assert agree > 0.8  # 0.9 in the data; 0.5 if columns were independent


def test_a_flow_has_no_probability_of_labels():
    with pytest.raises(DataError, match=r"Column 'kind' has labels, of which a flow has no probability; use likelih"):
        Diffusion(MLP((4,)), likelihood="flow", inference=MAP(epochs=1)).fit(TABLE)
