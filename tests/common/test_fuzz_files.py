"""Whatever a model file holds, loading and asking it ends in an answer that is finite or in an error of the library.

Each estimator is fitted and saved; `likely show` shows its file, and `likely evaluate` scores a table by it or says why
not. Then the file is changed at random: shapes, dtypes, entries, arguments, learned values.
Files are looked at in a process of their own, so that one which corrupts memory is a failure, not the end of the run.
`LIKELY_FUZZ=50 pytest tests/common/test_fuzz_files.py` looks at fifty times as many; with `NUMBA_BOUNDSCHECK=1` and a
fresh `NUMBA_CACHE_DIR`, compiled loops look at every index.
"""

from __future__ import annotations

import os
import resource
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import likely
from likely.core.errors import ModelFileError, SpecError
from likely.core.estimator import _MODELS
from likely.core.files import read_file, write_file
from likely.networks import LSTM, MLP, ConvNet, UNet

RUNNER = Path(__file__).with_name("fuzz_files.py")
MANY = int(os.environ.get("LIKELY_FUZZ", "1"))
COUNT = 3 * MANY
"""Changed files of each example."""
SEED = 0


def names():
    for name in likely.models.__all__:
        getattr(likely, name)
    own = {name: model for name, model in _MODELS.items() if model.__module__.startswith("likely.models.")}
    return sorted(name for name, model in own.items() if "__init__" in vars(model))


def run(*models):
    """What the runner says, and how it ended; a file that keeps it computing ends it, on a busy machine or not."""
    ended = subprocess.run(
        [sys.executable, str(RUNNER), str(SEED), str(COUNT), *models],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (280 * MANY, 280 * MANY)),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return ended.stdout.splitlines(), ended


def test_every_estimator_has_an_example():
    examples = runpy.run_path(str(RUNNER))["examples"]()
    assert sorted(examples) == names()


@pytest.mark.timeout(3000 * MANY)
def test_no_file_leads_to_an_answer_that_is_not_one():
    left, failures = names(), []
    while left:
        lines, ended = run(*left)
        failures += [line for line in lines if line.startswith("FAIL")]
        done = [line.split()[1] for line in lines if line.startswith("DONE")]
        if ended.returncode:
            at = [line for line in lines if line.startswith("AT")][-1:]
            failures.append(f"{left[len(done)]} ended the process ({ended.returncode}) {at} {ended.stderr[-500:]}")
        left = left[len(done) + bool(ended.returncode) :]
    assert not failures, "\n".join(failures[:20])


# --- the files that once did harm -----------------------------------------------------------------------------------
ROWS = np.random.default_rng(0).normal(size=(30, 1))
WORDS = np.random.default_rng(1).poisson(2.0, size=(12, 5))


@pytest.mark.parametrize(
    ("model", "X", "changes", "message"),
    [
        (
            likely.HiddenMarkov(n_states=2),
            ROWS,
            {"initial_": np.full(20_000, 1 / 20_000)},
            r"HiddenMarkov's initial_ has shape \(20000,\) in this file; it must be \(K=2\)",
        ),
        (
            likely.HiddenMarkov(n_states=2),
            ROWS,
            {"transition_": np.ones((2, 1))},
            r"HiddenMarkov's transition_ has shape \(2, 1\) in this file; it must be \(K=2, K=2\)",
        ),
        (
            likely.KalmanFilter(1),
            ROWS,
            {"transition_": np.ones((50, 1))},
            r"KalmanFilter's transition_ has shape \(50, 1\) in this file; it must be \(k=1, k=1\)",
        ),
        (
            likely.LatentDirichlet(2),
            WORDS,
            {"document_prior_": np.ones(2 * 10**7)},
            r"LatentDirichlet's document_prior_ has shape \(20000000,\) in this file; it must be \(K=2\)",
        ),
        (
            likely.HiddenMarkov(n_states=2),
            ROWS,
            {"transition_": np.array([[0.5, 0.6], [0.5, 0.5]])},
            "transition_ has values from 0.5 to 0.6 in this file; it must be probabilities that sum to 1",
        ),
        (
            likely.KalmanFilter(1),
            ROWS,
            {"observation_covariance_": -np.ones((1, 1))},
            "observation_covariance_ has values from -1 to -1 in this file; it must be symmetric and positive semidef",
        ),
    ],
    ids=["long initial", "narrow transition", "tall transition", "long prior", "no simplex", "no covariance"],
)
@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_arrays_that_do_not_fit_are_refused_by_name(model, X, changes, message, tmp_path):
    path = tmp_path / "model.likely"
    model.fit(X).save(path)
    header, tensors = read_file(path)
    write_file(path, header, tensors | {name: torch.from_numpy(value) for name, value in changes.items()})
    with pytest.raises(ModelFileError, match=message):
        likely.load(path)


@pytest.mark.parametrize(
    ("network", "change"),
    [
        (MLP((2,)), {"hidden": [1] * 300_000}),
        (LSTM(2), {"layers": 10**6}),
        (MLP((2,)), {"hidden": [10**9]}),
    ],
    ids=["deep", "stacked", "wide"],
)
def test_what_would_take_long_to_build_is_refused_at_once(network, change, tmp_path):
    path = tmp_path / "model.likely"
    X = ROWS if isinstance(network, MLP) else ROWS.reshape(10, 3, 1)
    model = likely.Regressor(network=network, inference=likely.inference.MAP(epochs=1)).fit(X, np.arange(len(X)) * 1.0)
    model.save(path)
    header, tensors = read_file(path)
    header["params"]["network"].update(change)
    write_file(path, header, tensors)
    with pytest.raises(ModelFileError, match=r"it must keep them at [\d,]+ or fewer"):
        likely.load(path)


def test_images_too_small_for_a_network_are_refused_with_what_would_do():
    with pytest.raises(SpecError, match=r"needs 4,096 × 4,096 pixels or more; found rows of shape \(1, 6, 6\)"):
        ConvNet((2,) * 12).build((1, 6, 6), 2)
    with pytest.raises(SpecError, match=r"would hold 3e\+23 numbers for each row; it must be at most 1e\+09"):
        UNet((1,) * 40).build((1, 6, 6), 1)
