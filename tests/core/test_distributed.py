import os
import runpy
import socket
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

from likely.core import distributed

SCRIPT = """
import os, sys, warnings
import numpy as np
import torch
torch.set_num_threads(1)
from likely import Classifier, Regressor
from likely.core import distributed
from likely.core.errors import ModelFileError
from likely.inference import MAP, Ensemble, Exact, Newton
from likely.likelihoods import Poisson
from likely.networks import MLP
from likely.optim import LBFGS, SGD
from likely.priors import Laplace, Normal

random = np.random.default_rng(0)
X = random.normal(size=(101, 4)) + 100.0
y = X @ [1.0, -2.0, 0.5, 0.0] + random.normal(size=101)
weight = random.uniform(0, 2, size=101)
counts = random.poisson(np.exp((y - y.mean()) / 5))
labels = (y > y.mean() + 2 * random.normal(size=101)).astype(int)
twins = np.column_stack([X, X[:, 0]])
Z = X - 100.0

answers = {}


def keep(name, model, *data, **more):
    model.fit(*data, **more)
    tensors = [*model.posterior_.parameters.values(), *model.posterior_.buffers.values()]
    answers[name] = torch.cat([value.double().reshape(-1) for value in tensors]).numpy()
    answers[name + "/answer"] = np.asarray(model.predict_dist(data[0]).mean.double())


keep("exact", Regressor(inference=Exact()), X, y)
keep("exact/weighted", Regressor(inference=Exact(), prior=Normal(0.5)), X, y, sample_weight=weight)
keep("exact/full", Regressor(inference=Exact("full"), prior=Normal(0.5)), X, y)
keep("exact/collinear", Regressor(inference=Exact()), twins, y)
keep("newton/poisson", Regressor(Poisson(), inference=Newton()), Z, counts, sample_weight=weight)
keep("newton/logistic", Classifier(inference=Newton(), prior=Laplace(0.5)), Z, labels)
quick = dict(random_state=0)
keep("map/net", Regressor(network=MLP((8,)), prior=Normal(), inference=MAP(epochs=5, batch_size=32), **quick), Z, y)
keep("map/sgd", Classifier(inference=MAP(SGD(0.1), epochs=5, batch_size=10, clip_norm=1.0), **quick), Z, labels)
keep("map/lbfgs", Regressor(prior=Normal(), inference=MAP(LBFGS(), epochs=5, batch_size=None), **quick), Z, y)
keep("map/patience", Regressor(network=MLP((8,)), inference=MAP(epochs=8, patience=2), **quick), Z, y)
keep("map/ensemble", Regressor(network=MLP((4,)), inference=Ensemble(2, MAP(epochs=3, batch_size=32)), **quick), Z, y)
keep("map/unseeded", Regressor(network=MLP((4,)), inference=MAP(epochs=2)), Z, y)

rank, world = distributed.rank(), distributed.world()
answers["rank"], answers["world"] = np.array(rank), np.array(world)
turned = torch.arange(6.0).reshape(2, 3).T + rank  # not contiguous
whole = torch.tensor([rank])
distributed.sum_(turned, whole)
answers["sum"], answers["sum/whole"] = turned.numpy(), whole.numpy()
distributed.broadcast_(mine := torch.full((2,), float(rank)))
answers["broadcast"] = mine.numpy()
answers["seed"] = np.array(distributed.agreed(100 + rank))
part = distributed.shard(101)
answers["share"] = np.array([part.start, part.stop])
np.savez(os.path.join(sys.argv[1], f"rank{rank}.npz"), **answers)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("distributed") / "fits.py"
    path.write_text(SCRIPT)
    return path


def _environment():
    inherited = {k: v for k, v in os.environ.items() if k not in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR")}
    return inherited | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def _run(command, folder):
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=_environment())
    assert done.returncode == 0, done.stderr[-4000:]
    return [dict(np.load(file)) for file in sorted(folder.glob("rank*.npz"))]


@pytest.fixture(scope="module")
def alone(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), str(folder)])
        runpy.run_path(str(script))
    return dict(np.load(folder / "rank0.npz"))


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


PROCESSES = 3  # two are those of every model's own test


@pytest.fixture(scope="module")
def together(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    launch = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={PROCESSES}"]
    launch += ["--master-addr=127.0.0.1", f"--master-port={_free_port()}"]
    answers = _run([*launch, script, folder], folder)
    assert len(answers) == PROCESSES
    return answers


def _fits(ranks):
    return [name for name in ranks[0] if name.split("/")[0] in ("exact", "newton", "map")]


def test_every_process_ends_with_the_same_bits(together):
    for name in _fits(together):
        for other in together[1:]:
            np.testing.assert_array_equal(other[name], together[0][name], err_msg=name)


def test_the_fit_is_that_of_one_process(together, alone):
    for name in _fits(together):
        if "unseeded" in name:
            continue
        tolerance = 1e-4 if name.startswith("map") else 1e-8
        scale = np.abs(alone[name]).max()
        np.testing.assert_allclose(together[0][name], alone[name], rtol=0, atol=tolerance * scale, err_msg=name)


def test_messages_between_processes(together):
    world = len(together)
    total = sum(range(world))
    shares = [tuple(answers["share"]) for answers in together]
    assert [int(answers["rank"]) for answers in together] == list(range(world))
    assert [shares[0][0], shares[-1][1]] == [0, 101]
    assert all(left[1] == right[0] for left, right in pairwise(shares))
    for answers in together:
        assert int(answers["world"]) == world
        np.testing.assert_array_equal(answers["sum"], world * np.arange(6.0).reshape(2, 3).T + total)
        np.testing.assert_array_equal(answers["sum/whole"], [total])
        np.testing.assert_array_equal(answers["broadcast"], [0.0, 0.0])
        assert int(answers["seed"]) == 100


def test_one_process_needs_no_messages():
    assert (distributed.world(), distributed.rank(), distributed.shard(7)) == (1, 0, slice(0, 7))
    value = torch.ones(2)
    distributed.sum_(value)
    distributed.broadcast_(value)
    assert torch.equal(value, torch.ones(2))
    assert distributed.agreed(5) == 5
    assert not torch.distributed.is_initialized()
