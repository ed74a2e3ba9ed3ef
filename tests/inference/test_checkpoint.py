"""A fit that is stopped at any moment, even by a kill, resumes to the same bits."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier, Regressor
from likely.core.checkpoint import Saver
from likely.core.errors import ModelFileError, SpecError
from likely.inference import MAP, SGHMC, SGLD, Checkpoint, Ensemble, MCDropout, Noise, PACBayes, Variational
from likely.likelihoods import StudentT
from likely.networks import MLP
from likely.optim import LBFGS, SGD, Adam, Cosine, GradientDescent, RMSprop
from likely.priors import Laplace
from likely.priors import Normal as NormalPrior


class Interrupted(Exception):
    """What stands in for a power cut."""


@pytest.fixture
def X(rng):
    return rng.normal(size=(30, 2))


@pytest.fixture
def y(rng, X):
    return np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=30)


def state_of(model):
    posterior = model.posterior_
    return {
        **posterior.parameters,
        **{f"buffer {k}": v for k, v in posterior.buffers.items()},
        "weights": posterior.weights,
    }


def assert_same_bits(ours, theirs):
    first, second = state_of(ours), state_of(theirs)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


CASES = {
    "adam, dropout, noise": (
        MLP((8,), dropout=0.3),
        MAP(Adam(0.01), epochs=5, batch_size=8, noise=Noise(0.1, 0.1, 0.1)),
    ),
    "momentum, schedule": (MLP((8,)), MAP(SGD(0.05, momentum=0.9), epochs=5, batch_size=8, schedule=Cosine(warmup=4))),
    "rmsprop, batch norm": (MLP((8,), norm="batch"), MAP(RMSprop(0.01), epochs=5, batch_size=10)),
    "quasi-newton": (MLP((4,), "tanh"), MAP(LBFGS(iterations=3), epochs=5, batch_size=None)),
    "line search": (MLP((4,), "tanh"), MAP(GradientDescent(), epochs=5, batch_size=None)),
    "early stopping": (MLP((16,)), MAP(Adam(0.1), epochs=12, batch_size=8, validation=0.3, patience=3)),
}


def raising(when):
    """Raises when the count of calls reaches `when`, once."""
    calls = []

    def call(argument):
        calls.append(argument)
        if len(calls) == when:
            raise Interrupted
        return argument if isinstance(argument, torch.Tensor) else None

    return call


def interrupted_and_resumed(model_of, training, X, y, path, when, by):
    """A fit cut short by a callback (at an epoch's end) or an augmentation (at a step), and then started anew."""
    resumable = training(checkpoint=Checkpoint(path, seconds=0))
    broken = resumable(callbacks=(raising(when),)) if by == "callback" else resumable(augment=raising(when))
    with pytest.raises(Interrupted):
        model_of(broken).fit(X, y)
    return model_of(resumable).fit(X, y)


@pytest.mark.parametrize(("by", "when"), [("callback", 1), ("callback", 3), ("augment", 2), ("augment", 5)])
@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_fit_resumes_to_the_same_bits(case, by, when, X, y, tmp_path):
    network, training = CASES[case]

    def model_of(inference):
        return Regressor(network=network, prior=NormalPrior(2.0), inference=inference, random_state=0)

    whole = model_of(training).fit(X, y)
    resumed = interrupted_and_resumed(model_of, training, X, y, tmp_path / "run.ckpt", when, by)
    assert_same_bits(resumed, whole)
    assert resumed.posterior_.info == whole.posterior_.info


@pytest.mark.parametrize("network", [MLP((8,), dropout=0.3), MLP((8,), norm="batch")], ids=repr)
@pytest.mark.parametrize("validation", [None, 0.3])
def test_a_stacked_ensemble_resumes_to_the_same_bits(network, validation, X, y, tmp_path):
    training = MAP(Adam(0.05), epochs=6, batch_size=8, validation=validation)

    def model_of(by):
        return Regressor(network=network, inference=Ensemble(3, by, "posterior"), random_state=0)

    whole = model_of(training).fit(X, y)
    resumed = interrupted_and_resumed(model_of, training, X, y, tmp_path / "run.ckpt", 3, "callback")
    assert "history" in whole.posterior_.info  # one program for all
    assert_same_bits(resumed, whole)


@pytest.mark.parametrize("when", [2, 5])
def test_an_ensemble_one_by_one_resumes_to_the_same_bits(when, X, y, tmp_path):
    """Each member has a file of its own; those that have ended are not trained again."""
    training = MAP(LBFGS(iterations=2), epochs=3, batch_size=None)

    def model_of(by):
        return Regressor(network=MLP((4,), "tanh"), inference=Ensemble(3, by), random_state=0)

    whole = model_of(training).fit(X, y)
    resumed = interrupted_and_resumed(model_of, training, X, y, tmp_path / "run.ckpt", when, "callback")
    assert_same_bits(resumed, whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.ckpt.0", "run.ckpt.1", "run.ckpt.2"]


def test_dropout_at_prediction_resumes_to_the_same_answers(X, y, tmp_path):
    training = MAP(Adam(0.05), epochs=4, batch_size=8)

    def model_of(by):
        return Regressor(network=MLP((8,), dropout=0.3), inference=MCDropout(5, by), random_state=0)

    whole = model_of(training).fit(X, y)
    resumed = interrupted_and_resumed(model_of, training, X, y, tmp_path / "run.ckpt", 2, "callback")
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))


def test_a_fit_cut_twice_resumes_to_the_same_bits(X, y, tmp_path):
    training = MAP(Adam(0.01), epochs=6, batch_size=8)
    resumable = training(checkpoint=Checkpoint(tmp_path / "run.ckpt", seconds=0))
    whole = Regressor(network=MLP((8,)), inference=training, random_state=0).fit(X, y)
    for when in (2, 2):
        broken = Regressor(network=MLP((8,)), inference=resumable(callbacks=(raising(when),)), random_state=0)
        with pytest.raises(Interrupted):
            broken.fit(X, y)
    assert_same_bits(Regressor(network=MLP((8,)), inference=resumable, random_state=0).fit(X, y), whole)


def test_a_finished_fit_is_taken_from_its_checkpoint(X, y, tmp_path):
    seen = []
    training = MAP(epochs=3, checkpoint=str(tmp_path / "run.ckpt"), callbacks=(lambda event: seen.append(event.epoch),))
    first = Regressor(network=MLP((8,)), inference=training, random_state=0).fit(X, y)
    again = Regressor(network=MLP((8,)), inference=training, random_state=0).fit(X, y)
    assert seen == [1, 2, 3]
    assert_same_bits(first, again)


def test_without_a_seed_the_one_of_the_checkpoint_is_taken(X, y, tmp_path):
    resumable = MAP(epochs=4, batch_size=8, checkpoint=Checkpoint(tmp_path / "run.ckpt", seconds=0))
    broken = resumable(callbacks=(raising(2),))
    with pytest.raises(Interrupted):
        Regressor(network=MLP((8,)), inference=broken).fit(X, y)
    first = Regressor(network=MLP((8,)), inference=resumable).fit(X, y)
    again = Regressor(network=MLP((8,)), inference=resumable).fit(X, y)
    assert_same_bits(first, again)


def test_time_between_writes_is_kept(X, y, tmp_path):
    """With long waits, only the end is written."""
    path = tmp_path / "run.ckpt"
    resumable = MAP(epochs=4, checkpoint=Checkpoint(path, seconds=3600))
    with pytest.raises(Interrupted):
        Regressor(network=MLP((8,)), inference=resumable(callbacks=(raising(3),)), random_state=0).fit(X, y)
    assert not path.exists()
    Regressor(network=MLP((8,)), inference=resumable, random_state=0).fit(X, y)
    assert path.exists()


# --- kill -9 --------------------------------------------------------------------------------------------------------
KILLED = """
    import os, random, signal, sys, time
    import numpy as np
    import torch
    import torch._dynamo  # optimisers import it: once here, not in every child

    from likely import Regressor
    from likely.inference import MAP, Checkpoint
    from likely.networks import MLP
    from likely.optim import Adam, Cosine

    path = sys.argv[1]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(X[:, 0])
    training = MAP(Adam(0.01), epochs=120, batch_size=8, schedule=Cosine(), validation=0.2)

    def fit(inference):
        torch.set_num_threads(1)
        return Regressor(network=MLP((16,), dropout=0.2), inference=inference, random_state=0).fit(X, y)

    resumable = training(checkpoint=Checkpoint(path, seconds=0))
    moments = random.Random(0)
    for _ in range(3):
        before = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        child = os.fork()  # nothing of torch has run in this process yet
        if not child:
            fit(resumable)
            os._exit(0)
        while not os.path.exists(path) or os.stat(path).st_mtime_ns == before:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "ended")
    resumed, whole = fit(resumable).posterior_, fit(training).posterior_
    same = all(torch.equal(resumed.parameters[name], value) for name, value in whole.parameters.items())
    print("same" if same and resumed.info == whole.info else "different")
"""


def test_a_fit_killed_again_and_again_resumes_to_the_same_bits(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run.ckpt")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    *ends, bits = done.stdout.split()
    assert bits == "same", done.stderr
    assert len(ends) == 3
    assert "killed" in ends  # on a busy machine a later run may end before it is killed


# --- files that do not belong here ----------------------------------------------------------------------------------
@pytest.fixture
def left_behind(X, y, tmp_path):
    """The checkpoint of a fit, and what made it."""
    path = tmp_path / "run.ckpt"
    training = MAP(Adam(0.01), epochs=3, batch_size=8, checkpoint=str(path))
    Regressor(network=MLP((8,)), inference=training, random_state=0).fit(X, y)
    return path, training


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"inference": MAP(Adam(0.02), epochs=3, batch_size=8)}, "inference"),
        ({"inference": MAP(Adam(0.01), epochs=9, batch_size=8)}, "inference"),
        ({"likelihood": StudentT()}, "likelihood"),
        ({"prior": Laplace(1.0)}, "prior"),
        ({"network": MLP((9,))}, "network"),
        ({"network": MLP((8,), "tanh")}, "network"),
    ],
    ids=str,
)
def test_the_checkpoint_of_another_fit_is_refused(change, what, left_behind, X, y):
    path, training = left_behind
    arguments = {"network": MLP((8,)), "inference": training, "random_state": 0} | change
    arguments["inference"] = arguments["inference"](checkpoint=str(path))
    with pytest.raises(
        ModelFileError, match=rf"run.ckpt belongs to another fit: its {what} was .* Delete the file, or give"
    ):
        Regressor(**arguments).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: {"X": X + 1, "y": y},
        lambda X, y: {"X": X, "y": 2 * y},
        lambda X, y: {"X": X[:-1], "y": y[:-1]},
        lambda X, y: {"X": X[::-1].copy(), "y": y},
        lambda X, y: {"X": X[:, ::-1].copy(), "y": y},
        lambda X, y: {"X": X, "y": y[::-1].copy()},
        lambda X, y: {"X": X, "y": y, "sample_weight": np.linspace(1, 2, 30)},
    ],
    ids=[
        "other X",
        "other y",
        "fewer rows",
        "X in another order",
        "columns in another order",
        "y in another order",
        "weights",
    ],
)
def test_a_checkpoint_with_other_data_is_refused(change, left_behind, X, y):
    _, training = left_behind
    with pytest.raises(ModelFileError, match="belongs to another fit: its data was"):
        Regressor(network=MLP((8,)), inference=training, random_state=0).fit(**change(X, y))


def test_a_checkpoint_with_another_seed_is_refused(left_behind, X, y):
    _, training = left_behind
    with pytest.raises(ModelFileError, match=r"run.ckpt belongs to a fit with another random_state. Delete the file"):
        Regressor(network=MLP((8,)), inference=training, random_state=1).fit(X, y)


def test_a_checkpoint_with_other_members_is_refused(left_behind, X, y):
    _, training = left_behind
    with pytest.raises(ModelFileError, match="its members was 1, now it is 2"):
        Regressor(network=MLP((8,)), inference=Ensemble(2, training), random_state=0).fit(X, y)


def test_other_callbacks_and_augmentation_do_not_matter(left_behind, X, y):
    _, training = left_behind
    Regressor(network=MLP((8,)), inference=training(callbacks=(print,), augment=torch.sin), random_state=0).fit(X, y)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "flipped"])
def test_a_damaged_checkpoint_is_refused(damage, left_behind, X, y):
    path, training = left_behind
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "noise": bytes(range(256)) * 4,
            "flipped": whole[:20] + b"\xff" * 8 + whole[28:],
        }[damage]
    )
    with pytest.raises(ModelFileError, match=r"run\.ckpt"):
        Regressor(network=MLP((8,)), inference=training, random_state=0).fit(X, y)


def test_a_model_file_is_not_a_checkpoint(X, y, tmp_path):
    model = Regressor(network=MLP((8,)), inference=MAP(epochs=1), random_state=0).fit(X, y)
    model.save(tmp_path / "model.likely")
    with pytest.raises(ModelFileError, match="belongs to another fit"):
        Regressor(network=MLP((8,)), inference=MAP(epochs=1, checkpoint=str(tmp_path / "model.likely"))).fit(X, y)


def test_a_folder_that_does_not_exist_is_said(X, y, tmp_path):
    training = MAP(epochs=1, checkpoint=Checkpoint(tmp_path / "nowhere" / "run.ckpt", seconds=0))
    with pytest.raises(ModelFileError, match=r"Cannot write .*run\.ckpt"):
        Regressor(network=MLP((8,)), inference=training).fit(X, y)


def test_labels_and_own_networks_resume_too(X, y, tmp_path):
    def network(in_shape, out_features):
        return nn.Sequential(nn.Linear(in_shape[-1], 6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, out_features))

    def model_of(inference):
        return Classifier(network=network, inference=inference, random_state=0)

    training = MAP(Adam(0.05), epochs=4, batch_size=8)
    whole = model_of(training).fit(X, y > 0)
    resumed = interrupted_and_resumed(model_of, training, X, y > 0, tmp_path / "run.ckpt", 2, "callback")
    assert_same_bits(resumed, whole)


def test_the_spec_takes_paths_and_no_negative_times():
    assert Checkpoint(Path("run.ckpt")).path == "run.ckpt"
    with pytest.raises(SpecError, match="seconds must be 0 or more"):
        Checkpoint("run.ckpt", seconds=-1)


# --- other methods of the engine --------------------------------------------------------------------------------------
OTHERS = {
    "variational": Variational(steps=6, samples=2, draws=4, batch_size=8, by=MAP(epochs=2)),
    "pac-bayes": PACBayes(steps=6, batch_size=8, checks=8, draws=3),
    "sgld": SGLD(chains=2, draws=3, warmup=4, thin=1, batch_size=8, by=MAP(epochs=2)),
    "sghmc": SGHMC(chains=2, draws=3, warmup=4, thin=1, batch_size=8, schedule="decreasing", by=MAP(epochs=2)),
}


@pytest.mark.parametrize("when", [1, 3, 5])
@pytest.mark.parametrize("name", OTHERS)
def test_every_step_of_the_engine_resumes_to_the_same_bits(name, when, X, y, tmp_path, monkeypatch):
    """The power goes during a step, after the file of the step before was written."""
    inference = OTHERS[name]

    def model_of(spec):
        return Regressor(network=MLP((4,), "tanh"), prior=NormalPrior(2.0), inference=spec, random_state=0)

    whole = model_of(inference).fit(X, y)
    resumable = inference(checkpoint=Checkpoint(tmp_path / "run.ckpt", seconds=0))
    write, written = Saver.write, []

    def failing(saver, state):
        write(saver, state)
        written.append(saver.checkpoint is not None and not saver.checkpoint.path.endswith(".start"))
        if sum(written) == when:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Saver, "write", failing)
        with pytest.raises(Interrupted):
            model_of(resumable).fit(X, y)
    resumed = model_of(resumable).fit(X, y)
    assert_same_bits(resumed, whole)
    assert resumed.posterior_.info == whole.posterior_.info
    with pytest.raises(ModelFileError, match="belongs to a fit with another random_state"):
        model_of(resumable).set_params(random_state=1).fit(X, y)
