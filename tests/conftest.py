"""Every test starts from the same seeds, on one thread, and leaves torch as it found it."""

import os
import random
import runpy
import socket
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest
import torch

hypothesis.settings.register_profile("likely", deadline=None, derandomize=True, database=None, max_examples=50)
hypothesis.settings.load_profile("likely")


@pytest.fixture(autouse=True)
def settled():
    """The same seeds and one thread before; torch's defaults unchanged after."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (scikit-learn draws from numpy's global state where random_state is None)
    torch.manual_seed(0)
    torch.set_num_threads(1)
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


@pytest.fixture(scope="session")
def shared_data():
    """The folder of small real data sets beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the shared data sets are not at {folder}; put them beside the checkout")
    return folder


KEEP = """
from likely.core import distributed as _distributed
import numpy as _numpy, sys as _sys
_numpy.savez(f"{_sys.argv[1]}/{_distributed.rank()}.npz", **found)
"""


@pytest.fixture(scope="session")
def by_processes(tmp_path_factory):
    """Runs a script here, and in processes that fit together: what its `found` holds here, and in each of them."""

    def by_processes(script, count=2):
        folder = tmp_path_factory.mktemp("processes")
        file = folder / "script.py"
        file.write_text(script + KEEP)
        here = folder / "here.py"
        here.write_text(script)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        shared |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        started = [
            subprocess.Popen(
                [sys.executable, file, folder],
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank in range(count)
        ]
        alone = runpy.run_path(str(here))
        for each in started:
            _, error = each.communicate(timeout=240)
            assert each.returncode == 0, error[-4000:]
        return alone["found"], *(dict(np.load(folder / f"{rank}.npz")) for rank in range(count))

    return by_processes
