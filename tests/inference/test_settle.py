"""Statistics of batch norm are those of all rows, however the rows are cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Regressor
from likely.inference import dataset
from likely.inference.linear.network_energy import NetworkEnergy
from likely.inference.log_posterior import LogPosterior
from likely.inference.settle import settle
from likely.likelihoods import Normal
from likely.networks import MLP


@pytest.fixture
def problem(rng, problem_of):
    """Columns that drift from row to row: blocks differ, and a moving average would follow the last of them."""
    X = rng.normal(size=(50, 3)) + np.linspace(-5, 20, 50)[:, None]
    model = Regressor(Normal(0.5), network=MLP((4,), norm="batch"), random_state=0, standardise=False)
    return problem_of(model, X, X[:, 0])


def hidden(module, problem):
    """What the layer of batch norm is given."""
    return module.network[0](problem.data.x).detach()


def norm(module):
    return next(layer for layer in module.modules() if isinstance(layer, nn.BatchNorm1d))


@pytest.mark.parametrize("rows", [50, 16, 7])  # blocks of 7 would leave a single row to the last
@pytest.mark.parametrize("made", [LogPosterior, NetworkEnergy])
def test_running_statistics_are_those_of_all_rows(rows, made, problem, monkeypatch):
    monkeypatch.setattr(dataset, "BLOCK", 3 * rows)
    assert max(len(batch.x) for batch in problem.data.blocks()) == rows
    module = made(problem).module
    seen = hidden(module, problem)
    torch.testing.assert_close(norm(module).running_mean, seen.mean(0), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(norm(module).running_var, seen.var(0), rtol=1e-10, atol=1e-10)


def test_the_module_is_left_as_it_was_but_for_its_statistics(problem):
    module = problem.module()
    before, momentum = torch.random.get_rng_state(), norm(module).momentum
    parameters = {name: value.detach().clone() for name, value in module.named_parameters()}
    settled = settle(module, problem)
    assert settled is module
    assert not module.training
    assert norm(module).momentum == momentum
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in module.named_parameters():
        assert torch.equal(value, parameters[name])


def test_a_network_that_keeps_nothing_is_not_run(problem_of, rng, monkeypatch):
    problem = problem_of(Regressor(network=MLP((4,))), rng.normal(size=(5, 2)), rng.normal(size=5))
    module = problem.module()
    monkeypatch.setattr(type(module), "forward", lambda *_: pytest.fail("the module was run"))
    assert not settle(module, problem).training
