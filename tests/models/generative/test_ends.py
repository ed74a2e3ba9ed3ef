"""Ends of columns, spread over the half-lines beyond them."""

from __future__ import annotations

import numpy as np
import torch

import likely
from likely import Diffusion
from likely.core.random import drawing
from likely.inference import MAP
from likely.inference.training.averaging import EMA
from likely.models.generative import DDPM
from likely.models.generative.ends import Ends
from likely.networks import MLP
from likely.optim import Adam

GRID = torch.tensor([[0.0, 2.0, 1.0, 0.1]] * 6 + [[float(k), k % 3, k / 7, 0.1 + k] for k in range(1, 10)])


def test_rows_come_back_and_only_ends_are_spread():
    """The second column has three values in all, and the third is said to have labels."""
    ends = Ends(4)
    ends.adapt(GRID, labels=[2])
    with drawing(0):
        spread = ends(GRID)
    torch.testing.assert_close(ends.inverse(spread), GRID)
    moved = spread != GRID
    assert bool(moved[:6, [0, 3]].all())
    assert not bool(moved[6:].any())
    assert not bool(moved[:, [1, 2]].any())
    torch.testing.assert_close(ends.double().inverse(spread.double()), GRID.double())


def test_an_end_has_the_probability_of_its_half_line(seed):
    """E_q[p(y) / q(y | x)] = P(y < low) for any density p: here N(0, 2²), whose half-line has probability ½.

    20,000 draws; 5 standard errors have a false-alarm rate of 6e-7.
    """
    ends = Ends(1).double()
    ends.adapt(GRID[:, :1])
    x = torch.zeros(20_000, 1, dtype=torch.float64)
    with drawing(seed):
        y = ends(x)
    weight = (torch.distributions.Normal(0.0, 2.0).log_prob(y[:, 0]) - ends.log_prob(y, x)).exp()
    assert abs(float(weight.mean()) - 0.5) < 5 * float(weight.std()) / len(weight) ** 0.5
    assert not bool(ends.log_prob(y + 3.0, x + 3.0).any())


def test_channels_of_images_have_their_ends_together():
    images = torch.stack([GRID[:, 0].repeat(2).reshape(-1, 2), torch.randn(15, 2)], 1)  # (15, 2 channels, 2 pixels)
    ends = Ends(4)
    ends.adapt(images.flatten(1), channels=2)
    assert ends.low[0, :2].tolist() == [0.0, 0.0]
    assert bool((ends.low[0, 2:] < -1e37).all())


def test_draws_reach_an_end_as_often_as_rows(seed, tmp_path):
    """Half of the rows are exactly 0, in both columns; fits of 7 seeds are 0.013 off at most."""
    rng = np.random.default_rng(seed)
    wet = rng.random((400, 1)) < 0.5
    rows = np.where(wet, np.exp(rng.normal(0.5, 0.3, (400, 2))), 0.0)
    training = MAP(Adam(5e-3), epochs=60, batch_size=100, average=EMA(0.98))
    network = MLP((32, 32), activation="silu")
    model = Diffusion(network, steps=50, sampler=DDPM(25), inference=training, random_state=0).fit(rows)
    draws = model.sample(500, random_state=0)
    np.testing.assert_allclose((draws == 0).mean(0), (rows == 0).mean(0), atol=0.1)
    assert draws[draws != 0].min() > 0.999 * rows[rows != 0].min()
    assert np.isfinite(model.log_prob(rows[:20], draws=4)).all()
    model.save(tmp_path / "d.likely")
    again = likely.load(tmp_path / "d.likely")
    np.testing.assert_array_equal(again.sample(9, random_state=0), model.sample(9, random_state=0))
