"""Questions to one member of a posterior."""

from __future__ import annotations

import torch
from torch import nn

from likely.inference import Posterior
from likely.models.generative.module import DensityModule, ask


class Doubled(DensityModule):
    def __init__(self, value):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.layer.weight, value)

    def forward(self, x, condition=None):
        return self.layer(x)[:, 0]

    def sample(self, count, condition=None):
        return self.layer.weight.expand(count, 1) * 2


def test_each_member_answers_any_method_with_its_own_parameters():
    posterior = Posterior.of(Doubled(1.0), Doubled(3.0))
    assert ask(posterior, 0, "sample", 2).tolist() == [[2.0], [2.0]]
    assert ask(posterior, 1, "sample", 1).tolist() == [[6.0]]
    assert ask(posterior, 1, "log_prob", torch.ones(1, 1), None, 1).tolist() == [3.0]
    assert ask(Posterior.of(Doubled(4.0)), 0, "sample", 1).tolist() == [[8.0]]
