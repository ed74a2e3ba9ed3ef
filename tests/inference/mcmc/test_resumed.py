"""Chains that were killed and resumed, draws on disk, and chains in many processes."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch
from tests.inference.mcmc.test_base import PROPER, SHORT, flat

import likely
from likely import Regressor, sampling
from likely.core.errors import (
    DataError,
    ModelFileError,
)
from likely.inference import HMC, NUTS, Checkpoint, Langevin, MetropolisHastings
from likely.inference.mcmc import base as mcmc
from likely.inference.mcmc import draws
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.sampling import storage


# --- killed and resumed ---------------------------------------------------------------------------------------------
class Interrupted(Exception):
    """What stands in for a power cut."""


@pytest.fixture
def cut(monkeypatch):
    """Raises at a step of the sampler; without an argument, no longer."""

    def cut(sampler, when=None):
        plain = getattr(sampler, "_plain_step", sampler.step)
        monkeypatch.setattr(sampler, "_plain_step", plain, raising=False)
        calls = []

        def step(self, *arguments):
            calls.append(1)
            if len(calls) == when:
                raise Interrupted
            return plain(self, *arguments)

        monkeypatch.setattr(sampler, "step", step)

    return cut


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("network", [None, MLP((3,), "tanh")], ids=["linear", "network"])
@pytest.mark.parametrize("name", SHORT)
def test_a_killed_run_resumes_to_the_same_bits(name, network, streamed, data, cut, tmp_path):
    arguments = {"likelihood": Normal(0.5), "prior": PROPER, "random_state": 0}
    arguments |= {} if network is None else {"network": network}
    by = SHORT[name]
    whole = Regressor(inference=by, **arguments).fit(*data)
    stream = str(tmp_path / "draws") if streamed else None
    resumable = by(checkpoint=Checkpoint(tmp_path / "run.ckpt", seconds=0), stream=stream)
    sampler = getattr(sampling, name)
    for when in (4, 20, 13):  # in warm-up twice, and among the draws
        cut(sampler, when)
        with pytest.raises(Interrupted):
            Regressor(inference=resumable, **arguments).fit(*data)
    cut(sampler)
    resumed = Regressor(inference=resumable, **arguments).fit(*data)
    np.testing.assert_array_equal(flat(resumed), flat(whole))
    assert torch.equal(resumed.posterior_.log_prob, whole.posterior_.log_prob)
    for key, value in whole.posterior_.stats.items():
        assert torch.equal(resumed.posterior_.stats[key], value)
    cut(sampler, 1)  # a finished run is taken from its checkpoint without a step
    np.testing.assert_array_equal(flat(Regressor(inference=resumable, **arguments).fit(*data)), flat(whole))


def test_the_checkpoint_of_another_fit_is_refused(data, tmp_path):
    path = str(tmp_path / "run.ckpt")
    arguments = {"likelihood": Normal(0.5), "prior": PROPER}
    Regressor(inference=SHORT["HMC"](checkpoint=path), random_state=0, **arguments).fit(*data)
    with pytest.raises(ModelFileError, match="belongs to another fit: its inference was"):
        Regressor(inference=HMC(3, 9, 30, checkpoint=path), random_state=0, **arguments).fit(*data)
    with pytest.raises(ModelFileError, match="another random_state"):
        Regressor(inference=SHORT["HMC"](checkpoint=path), random_state=1, **arguments).fit(*data)
    with pytest.raises(ModelFileError, match="belongs to another fit: its data was"):
        Regressor(inference=SHORT["HMC"](checkpoint=path), random_state=0, **arguments).fit(data[0], -data[1])


# --- draws on disk --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("named", [False, True])
def test_draws_in_a_file_are_those_in_memory(named, data, tmp_path, monkeypatch):
    arguments = {"likelihood": Normal(0.5), "prior": PROPER, "random_state": 0}
    held = Regressor(inference=SHORT["HMC"], **arguments).fit(*data)
    if named:
        by = SHORT["HMC"](stream=str(tmp_path / "draws"))
    else:
        monkeypatch.setattr(storage, "IN_MEMORY", 10)
        by = SHORT["HMC"]
    monkeypatch.setattr(draws, "AT_ONCE", 12)  # predictions look at three draws together
    streamed = Regressor(inference=by, **arguments).fit(*data)
    np.testing.assert_array_equal(flat(streamed), flat(held))
    np.testing.assert_allclose(streamed.predict(data[0]), held.predict(data[0]), rtol=1e-12)
    assert (tmp_path / "draws").exists() == named
    streamed.save(tmp_path / "model.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "model.likely").predict(data[0]), streamed.predict(data[0]))


def test_a_folder_that_does_not_exist_is_said(data, tmp_path):
    by = SHORT["HMC"](stream=str(tmp_path / "nowhere" / "draws"))
    with pytest.raises(DataError, match=r"stream: cannot keep .* GB of draws in .*nowhere"):
        Regressor(Normal(0.5), prior=PROPER, inference=by).fit(*data)


def test_a_checkpoint_without_its_draws_is_refused(data, tmp_path):
    by = SHORT["HMC"](stream=str(tmp_path / "draws"), checkpoint=str(tmp_path / "run.ckpt"))
    arguments = {"likelihood": Normal(0.5), "prior": PROPER, "random_state": 0}
    Regressor(inference=by, **arguments).fit(*data)
    (tmp_path / "draws").unlink()
    with pytest.raises(ModelFileError, match="does not hold the draws of the checkpoint"):
        Regressor(inference=by, **arguments).fit(*data)


# --- many processes -------------------------------------------------------------------------------------------------
SCRIPT = """
    import sys
    import numpy as np
    import torch
    torch.set_num_threads(1)
    from likely import Regressor, priors
    from likely.core import distributed
    from likely.inference import HMC
    from likely.likelihoods import Poisson

    random = np.random.default_rng(0)
    X = random.normal(size=(51, 2))
    y = random.poisson(np.exp(X[:, 0]))
    model = Regressor(Poisson(), prior=priors.Normal(1.0), inference=HMC(4, 10, 20), random_state=0).fit(X, y)
    answers = {"weight": model.posterior_.parameters["network.weight"].numpy()}
"""


def test_processes_share_the_rows_and_agree_on_the_draws(by_processes):
    alone, first, second = by_processes(textwrap.dedent(SCRIPT))
    np.testing.assert_array_equal(first["weight"], second["weight"])
    np.testing.assert_allclose(alone["weight"], first["weight"], rtol=1e-6)


def test_every_method_has_what_all_share():
    for cls in (HMC, NUTS, Langevin, MetropolisHastings):
        assert issubclass(cls, mcmc._MarkovChain)
        assert cls.dtype == torch.float64
        assert cls.example().draws < 10
