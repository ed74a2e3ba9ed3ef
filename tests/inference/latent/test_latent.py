"""The protocol of models with hidden variables, on the two coins of Dempster, Laird and Rubin's kind."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from likely.inference.latent.latent import Latent, LatentFit


class Coins(Latent):
    """Rows of heads out of n tosses of one of two coins, each with its own probability; which one is hidden."""

    def __init__(self, heads, tosses):
        self.heads, self.tosses = torch.as_tensor(heads).double(), tosses

    def start(self, seeds):
        return {"p": torch.tensor([[0.6, 0.5]] * len(seeds), dtype=torch.float64)}

    def expect(self, params):
        p = params["p"][:, None]
        joint = (
            self.heads[:, None] * p.log()
            + (self.tosses - self.heads)[:, None] * torch.log1p(-p)
            - torch.log(torch.tensor(2.0))
        )
        share = joint.softmax(-1)
        sums = {"heads": (share * self.heads[:, None]).sum(1), "tosses": share.sum(1) * self.tosses}
        return sums, joint.logsumexp(-1).sum(1)

    def maximise(self, params, statistics):
        return {"p": statistics["heads"] / statistics["tosses"]}

    def rows(self):
        return self.heads, None


def test_a_step_of_em_is_the_published_one():
    """Do and Batzoglou (2008): from (0.60, 0.50), one step leads to (0.71, 0.58) and ten to (0.80, 0.52)."""
    model = Coins([5, 9, 8, 4, 7], 10)
    params, values = model.start([0]), []
    for step in range(10):
        statistics, value = model.expect(params)
        params = model.maximise(params, statistics)
        values.append(float(value))
        if step == 0:
            torch.testing.assert_close(params["p"][0], torch.tensor([0.71, 0.58]).double(), rtol=0, atol=0.006)
    torch.testing.assert_close(params["p"][0], torch.tensor([0.80, 0.52]).double(), rtol=0, atol=0.006)
    assert all(later > earlier for earlier, later in pairwise(values))


def test_what_a_model_need_not_say():
    model = Coins([5, 9], 10)
    params = model.start([0, 1])
    assert model.log_prior(params) == 0.0
    assert model.finished(params) is params
    assert model.total_rows() == 2.0
    assert not model.differentiable
    for ask in (
        lambda: model.to_free(params),
        lambda: model.from_free(params),
        lambda: model.row_log_prob(params, None),
    ):
        with pytest.raises(NotImplementedError):
            ask()
    with pytest.raises(TypeError, match="abstract"):
        Latent()


def test_a_fit_counts_its_steps():
    fit = LatentFit({"p": torch.ones(2)}, torch.tensor([-3.0, -2.0, -1.5]), torch.tensor([-1.5]), True)
    assert fit.n_iter == 2
    assert LatentFit({}, torch.empty(0), torch.empty(0), False).n_iter == 0
    assert fit.members is None
