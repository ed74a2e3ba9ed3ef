"""Seeds are others at each shift wherever they are given, and the failures of a test are counted over shifts."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.shift import STEP

DRAWS = """
import numpy as np
import torch
from sklearn.utils import check_random_state


def draws():
    torch.manual_seed(0)
    np.random.seed(0)
    states = np.random.rand(), np.random.RandomState(0).rand(), check_random_state(0).rand()
    tensors = torch.rand(()), torch.rand((), generator=torch.Generator().manual_seed(0))
    return [np.random.default_rng(0).random(), *states, *map(float, tensors)]
"""

TESTS = f"""{DRAWS}
import os
import subprocess
import sys
from pathlib import Path

SEED = int(os.environ["LIKELY_SEED_SHIFT"]) * {STEP}


def test_draws_are_those_of_the_shifted_seed():
    state = np.random.mtrand.RandomState(SEED).rand()
    tensor = float(torch.rand((), generator=torch._C.Generator().manual_seed(SEED)))
    assert draws() == [np.random.Generator(np.random.PCG64(SEED)).random(), *3 * [state], *2 * [tensor]]


def test_processes_shift_too():
    said = subprocess.run([sys.executable, Path(__file__).with_name("draws.py")], capture_output=True, text=True)
    assert said.stdout == str(draws()), said.stderr


def test_states_are_states_whoever_made_them():
    assert all(isinstance(state, np.random.RandomState) for state in (np.random.mtrand._rand, check_random_state(3)))


def test_one_fails_now_and_then():
    assert np.random.default_rng(0).random() < {{limit}}
"""


@pytest.fixture(scope="module")
def uniforms():
    """What `default_rng(0)` draws at shifts 1 and 2."""
    return [np.random.Generator(np.random.PCG64(shift * STEP)).random() for shift in (1, 2)]


@pytest.fixture(scope="module")
def counted(tmp_path_factory, uniforms):
    """What the counter prints of these tests, the last of which fails where the larger number is drawn."""
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "draws.py").write_text(f"{DRAWS}\nprint(draws(), end='')")
    (folder / "test_drawn.py").write_text(TESTS.replace("{limit}", str(np.mean(uniforms))))
    command = [sys.executable, "-m", "tests.seeds", "1-2", str(folder / "test_drawn.py")]
    env = {name: value for name, value in os.environ.items() if name not in ("LIKELY_SEED_SHIFT", "PYTHONPATH")}
    env["SEEDS_OUT"] = str(folder / "out")
    ran = subprocess.run(command, cwd=Path(__file__).parents[1], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_failures_are_counted_and_seeds_shift_in_every_process(counted, uniforms):
    failed, total = counted  # one line: the tests about seeds pass
    assert failed.endswith(f"test_one_fails_now_and_then  at [{1 + np.argmax(uniforms)}]")
    assert failed.split()[:3] == ["1", "of", "2"]
    assert total.startswith("1 failed of 8 in 2 shifts")
