"""A variational posterior keeps q itself: mirrored members from its seed, new draws, and files that hold q alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.core.errors import ModelFileError
from likely.inference.gaussian import Gaussian
from likely.inference.variational.posterior import VariationalPosterior

DRAWS = 6
INFO = {"draws": DRAWS, "seed": 3}
MEAN = torch.arange(4, dtype=torch.float64)


def made(gaussian=None):
    """q of the weight (2, 2) of a layer whose bias is held at 7."""
    layer = nn.Linear(2, 2).double()
    parameters = {"weight": MEAN.reshape(1, 2, 2), "bias": torch.full((1, 2), 7.0, dtype=torch.float64)}
    gaussian = gaussian or Gaussian(MEAN, scale=torch.full((4,), 0.5, dtype=torch.float64))
    return VariationalPosterior(layer, parameters, {}, info=INFO, gaussian=gaussian, trainable=["weight"])


def test_members_are_mirrored_around_the_mean_and_the_rest_is_held():
    posterior = made()
    weight = posterior.parameters["weight"].flatten(1)
    assert len(posterior) == DRAWS
    torch.testing.assert_close(weight.mean(0), MEAN)
    assert float((weight - MEAN).abs().min()) > 0
    assert torch.equal(posterior.parameters["bias"], torch.full((DRAWS, 2), 7.0, dtype=torch.float64))
    assert torch.equal(made().parameters["weight"], posterior.parameters["weight"])


def test_new_draws_come_from_q(seed):
    """5,000 draws: each mean is off by less than 6 · 0.5/√5,000, six standard errors (false alarms below 1e-8)."""
    drawn = made().draw(5_000, torch.Generator().manual_seed(seed)).parameters["weight"].flatten(1)
    assert float((drawn.mean(0) - MEAN).abs().max()) < 6 * 0.5 / 5_000**0.5
    assert float((drawn.std(0) / 0.5 - 1).abs().max()) < 6 / 10_000**0.5


@pytest.mark.parametrize("part", ["scale", "factor"])
def test_a_file_holds_q_and_gives_the_same_members(part):
    value = torch.full((4,), 0.5, dtype=torch.float64)
    posterior = made(Gaussian(MEAN, **{part: value if part == "scale" else torch.diag(value)}))
    learned, tensors = posterior.state()
    assert tensors["parameters.weight"].shape == (1, 2, 2)
    again = VariationalPosterior.restore(nn.Linear(2, 2).double(), learned, tensors)
    torch.testing.assert_close(again.parameters["weight"], posterior.parameters["weight"])
    torch.testing.assert_close(again.gaussian.covariance(), posterior.gaussian.covariance())


def test_files_that_do_not_fit_are_refused():
    learned, tensors = made().state()
    for change, text in (
        (({**learned, "trainable": ["other"]}, tensors), "names parameters that its network lacks"),
        ((learned, {**tensors, "scale": torch.full((4,), torch.inf)}), "its covariance is not finite"),
    ):
        with pytest.raises(ModelFileError, match=text):
            VariationalPosterior.restore(nn.Linear(2, 2).double(), *change)
