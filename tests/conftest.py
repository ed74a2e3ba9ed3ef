"""Every test starts from the same seeds, on one thread, and leaves torch as it found it."""

import os
import random
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
