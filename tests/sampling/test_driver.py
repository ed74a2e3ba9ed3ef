"""One driver for all chains: a killed call resumes to the same bits, draws lie in memory or in a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, constraints

from likely import sampling
from likely.core.checkpoint import Checkpoint
from likely.core.errors import DataError, ModelFileError
from likely.sampling import Gibbs, sample, storage

pytestmark = pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")  # runs are short

PLANE = MultivariateNormal(torch.zeros(2).double(), torch.tensor([[1.0, 0.8], [0.8, 1.0]]).double())
METHODS = {
    "HMC": sampling.HMC(max_steps=8),
    "NUTS": sampling.NUTS(max_depth=3),
    "Langevin": sampling.Langevin(),
    "MetropolisHastings": sampling.MetropolisHastings(),
}


class Interrupted(Exception):
    """What stands in for a power cut."""


class Cut:
    """A density that fails at one of its calls."""

    def __init__(self, when=None):
        self.calls, self.when = 0, when

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.when:
            raise Interrupted
        return PLANE.log_prob(x)


def same(first, second):
    assert torch.equal(first.draws, second.draws)
    assert torch.equal(first.log_prob, second.log_prob)
    assert set(first.stats) == set(second.stats)
    for name, value in first.stats.items():
        assert torch.equal(second.stats[name], value)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_a_killed_call_resumes_to_the_same_bits(name, streamed, tmp_path):
    arguments = {"initial": [0.0, 0.0], "method": METHODS[name], "draws": 15, "warmup": 25, "thin": 2}
    arguments |= {"random_state": 0, "chains": 3}
    whole = sample(Cut(), **arguments)
    arguments["checkpoint"] = Checkpoint(tmp_path / "run.ckpt", seconds=0)
    arguments["stream"] = str(tmp_path / "draws") if streamed else None
    for when in (15, 25, 14):
        with pytest.raises(Interrupted):
            sample(Cut(when), **arguments)
    resumed = sample(Cut(), **arguments)
    same(whole, resumed)
    finished = Cut()
    same(whole, sample(finished, **arguments))  # taken from its checkpoint, without a step
    assert finished.calls < 20  # a look at the starts, and at whether the density is the same


def test_chains_on_a_part_of_the_line_resume_as_well(tmp_path):
    arguments = {"initial": 1.0, "method": "hmc(max_steps=4)", "draws": 10, "warmup": 10, "random_state": 0}
    arguments |= {"support": constraints.positive}
    whole = sample(lambda x: -0.5 * x.square(), **arguments)
    left, calls = Checkpoint(tmp_path / "run.ckpt", seconds=0), []

    def cut(x):
        calls.append(1)
        if len(calls) == 20:
            raise Interrupted
        return -0.5 * x.square()

    with pytest.raises(Interrupted):
        sample(cut, **arguments, checkpoint=left)
    same(whole, sample(lambda x: -0.5 * x.square(), **arguments, checkpoint=left))


def test_integers_resume_and_stay_integers(tmp_path):
    def log_prob(x):
        return -0.5 * (x[:, 0] - x[:, 1]).double().square()

    arguments = {"initial": torch.zeros(2, dtype=torch.long), "draws": 20, "warmup": 5, "random_state": 0}
    arguments["method"] = Gibbs(supports=(0, 1, 2))
    whole = sample(log_prob, **arguments)
    resumed = sample(log_prob, **arguments, checkpoint=str(tmp_path / "run.ckpt"), stream=str(tmp_path / "draws"))
    same(whole, resumed)
    assert resumed.draws.dtype == torch.int64
    same(whole, sample(log_prob, **arguments, checkpoint=str(tmp_path / "run.ckpt"), stream=str(tmp_path / "draws")))


def test_thinning_keeps_every_kth_step():
    arguments = {"initial": [0.0, 0.0], "method": METHODS["HMC"], "warmup": 10, "random_state": 0}
    every = sample(PLANE, draws=30, **arguments)
    third = sample(PLANE, draws=10, thin=3, **arguments)
    assert torch.equal(third.draws, every.draws[:, 2::3])
    assert torch.equal(third.log_prob, every.log_prob[:, 2::3])


def test_the_checkpoint_of_another_call_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    arguments = {"initial": [0.0, 0.0], "draws": 5, "warmup": 5, "checkpoint": path}
    sample(PLANE, **arguments, random_state=0)
    for change, what in (
        ({"random_state": 1}, "its random_state was 0, now it is 1"),
        ({"random_state": 0, "thin": 2}, "its length was"),
        ({"random_state": 0, "method": "hmc()"}, "its method was"),
        ({"random_state": 0, "chains": 5}, "its shape was"),
    ):
        with pytest.raises(ModelFileError, match=f"belongs to another fit: {what}"):
            sample(PLANE, **arguments, **change)
    with pytest.raises(ModelFileError, match=r"belongs to another density: where its chain 0 is, log_prob was"):
        sample(lambda x: -x.square().sum(1), **arguments, random_state=0)


def test_many_draws_lie_in_a_file_that_vanishes(monkeypatch):
    held = sample(PLANE, [0.0, 0.0], draws=20, random_state=0)
    monkeypatch.setattr(storage, "IN_MEMORY", 10)
    streamed = sample(PLANE, [0.0, 0.0], draws=20, random_state=0)
    np.testing.assert_array_equal(streamed.draws, held.draws)


def test_a_folder_that_does_not_exist_is_said(tmp_path):
    with pytest.raises(DataError, match=r"stream: cannot keep .* GB of draws in .*nowhere"):
        sample(PLANE, [0.0, 0.0], draws=5, stream=str(tmp_path / "nowhere" / "draws"))
