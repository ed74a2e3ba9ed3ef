"""A problem builds its module once, and answers from its description what is asked of it before training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier, Regressor
from likely.inference import HMC, MAP, SGLD, Ensemble, Laplace, Newton, Variational
from likely.inference.description import Description
from likely.models.supervised.build import Plan
from likely.networks import MLP, Linear

QUICK = MAP(epochs=2)
CASES = {
    "map": (MLP((4,)), QUICK, 1),
    "auto": (Linear(), "auto", 1),
    "newton": (Linear(), Newton(), 1),
    "newton of a network": (MLP((4,), "tanh"), Newton(max_iter=2), 1),
    "laplace": (MLP((4,), "tanh"), Laplace(by=QUICK), 1),
    "variational": (MLP((4,), "tanh"), Variational(steps=2, samples=2, draws=2, by=QUICK), 1),
    "sgld": (MLP((4,), "tanh"), SGLD(chains=2, draws=2, warmup=2, thin=1, by=QUICK), 1),
    "hmc, linear": (Linear(), HMC(chains=2, draws=4, warmup=4), 1),
    "hmc, one start for each chain": (MLP((4,), "tanh"), HMC(chains=3, draws=4, warmup=4), 1 + 3),
    "ensemble, one start for each member": (MLP((4,)), Ensemble(3, by=QUICK), 3),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_a_fit_builds_no_more_modules_than_it_has_starts(case, rng, monkeypatch):
    """Besides the one that the estimator asks, before there is a problem, which shapes it takes and gives."""
    network, inference, most = CASES[case]
    built = []
    build = Plan.predictor

    def counted(self, *args, **kwargs):
        built.append(self)
        return build(self, *args, **kwargs)

    monkeypatch.setattr(Plan, "predictor", counted)
    X = rng.normal(size=(30, 2))
    Classifier(network=network, prior="normal(1.0)", inference=inference, random_state=0).fit(X, X[:, 0] > 0)
    assert len(built) == most


def test_a_description_says_what_the_module_has():
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    module[0].weight.requires_grad_(False)
    description = Description.of(module)
    assert description.trainable == ("0.bias", "1.weight", "1.bias")
    assert description.size == sum(value.numel() for value in module.parameters())
    assert description.like("1.weight").shape == module[1].weight.shape
    assert not description.linear


def test_modules_of_one_problem_do_not_share_their_parameters(monkeypatch):
    """Whether a module is copied, as small ones are, or built anew: what is done to one does not show in the next."""
    X, seen, fit = np.random.default_rng(0).normal(size=(20, 2)), [], MAP.fit
    monkeypatch.setattr(MAP, "fit", lambda self, problem: seen.append(problem) or fit(self, problem))
    for network in (MLP((4,)), MLP((400, 300))):  # the second has more than 100,000 parameters
        Regressor(network=network, inference=MAP(epochs=1), random_state=0).fit(X, X[:, 0])
        problem = seen.pop()
        first, second, other = problem.module(), problem.with_(title="again").module(), problem.module(7)
        for one, two, three in zip(first.parameters(), second.parameters(), other.parameters(), strict=True):
            assert torch.equal(one, two)
            assert one.data_ptr() != two.data_ptr()
            assert one.shape == three.shape
        with torch.no_grad():
            next(first.parameters()).add_(1.0)
        torch.testing.assert_close(next(problem.module().parameters()), next(second.parameters()), rtol=0, atol=0)
