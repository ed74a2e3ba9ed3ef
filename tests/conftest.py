"""Every test starts from the same seeds, on one thread unless told otherwise, and leaves torch as it found it."""

import os
import random
import runpy
import socket
import subprocess
import sys
import threading
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest
import torch
from scipy.stats import t
from tests.shift import SHIFT, leave_blobs

hypothesis.settings.register_profile("likely", deadline=None, derandomize=not SHIFT, database=None, max_examples=50)
hypothesis.settings.load_profile("likely")


if SHIFT:
    leave_blobs()


@pytest.fixture(autouse=True)
def settled(request):
    """The same seeds before, and one thread unless OMP_NUM_THREADS says otherwise; torch unchanged after."""
    seed = request.getfixturevalue("seed") if "seed" in request.fixturenames else 0
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (scikit-learn draws from numpy's global state where random_state is None)
    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    before = _defaults()
    yield
    after = _defaults()
    torch.set_default_dtype(before["dtype"])
    torch.set_grad_enabled(before["grad"])
    assert after == before, f"the test changed torch for the whole process: {after}, was {before}"


def _defaults():
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "validate": torch.distributions.Distribution._validate_args,
    }


@pytest.fixture
def seed():
    """The seed of a statistical test: 0, or what `make portable` and `make seeds` shift it to."""
    return SHIFT


@pytest.fixture(scope="session")
def chances():
    """p-values of averages of facts (chains, draws, k) against what they should be: t of the means of the chains.

    Chains are independent. Draws of one chain are not, and those of a Hamiltonian one are worth less in squares than in
    sums: there an effective sample size of the sums would promise too much.
    """

    def chances(facts, expected):
        means = np.asarray(facts).mean(1)
        error = means.std(0, ddof=1) / len(means) ** 0.5
        return 2 * t.sf(np.abs(means.mean(0) - np.asarray(expected)) / error, len(means) - 1)

    return chances


@pytest.fixture(scope="session")
def shared_data():
    """The folder of small real data sets beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the shared data sets are not at {folder}; put them beside the checkout")
    return folder


LISTEN = """
import runpy, sys
import numpy as np
from likely.core import distributed

for line in sys.stdin:
    script, folder = line.split("\\t")
    answers = runpy.run_path(script)["answers"]
    np.savez(f"{folder.strip()}/{distributed.rank()}.npz", **answers)
    print("done", flush=True)
"""


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory):
    """Two processes that fit together and wait for scripts: to start new ones for each would take most of the time."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "listen.py").write_text(LISTEN)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(
            [sys.executable, folder / "listen.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / f"error{rank}").open("w"),
            text=True,
            env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]
    yield started, folder
    for process in started:
        process.stdin.close()
        process.wait(60)


@pytest.fixture
def by_processes(two_processes, tmp_path):
    """Runs a script here, and in two processes that fit together: what its `answers` hold here, and in each of them."""

    def by_processes(script):
        started, logs = two_processes
        path = tmp_path / "script.py"
        path.write_text(script)
        for process in started:
            process.stdin.write(f"{path}\t{tmp_path}\n")
            process.stdin.flush()
        alone = runpy.run_path(str(path))["answers"]
        timers = [threading.Timer(240, process.kill) for process in started]
        for rank, (process, timer) in enumerate(zip(started, timers, strict=True)):
            timer.start()
            answer = process.stdout.readline()
            timer.cancel()
            assert answer == "done\n", (logs / f"error{rank}").read_text()[-4000:]
        return alone, *(dict(np.load(tmp_path / f"{rank}.npz")) for rank in range(2))

    return by_processes
