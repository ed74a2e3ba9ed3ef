"""Answers go in blocks of rows: the same numbers, and memory that does not grow with the rows."""

import subprocess
import sys

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.inference import MAP, Ensemble
from likely.models.supervised import base
from likely.networks import LSTM, MLP

X = np.random.default_rng(0).normal(size=(300, 3))
TRAIN = MAP(epochs=2)


@pytest.mark.parametrize("inference", [TRAIN, Ensemble(2, by=TRAIN)])
def test_blocks_give_the_answers_of_the_whole(inference, monkeypatch):
    number = Regressor(network=MLP((8,)), inference=inference, random_state=0).fit(X, X[:, 0])
    label = Classifier(network=MLP((8,)), inference=inference, random_state=0).fit(X, X[:, 0] > 0)

    def answers():
        yield number.predict(X)
        yield np.stack(number.predict_interval(X))
        yield number.log_prob(X, X[:, 0])
        yield label.predict_proba(X)
        yield label.predict_log_proba(X)
        yield label.log_prob(X, X[:, 0] > 0)

    whole = list(answers())
    monkeypatch.setattr(base, "BLOCK", 1)  # blocks of the least size
    for answer, expected in zip(answers(), whole, strict=True):
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


def test_draws_in_blocks_are_draws_of_each_row(monkeypatch):
    """A mean of 400 draws is within 6 of its standard errors in all 300 rows: a false alarm in 1e6 runs."""
    number = Regressor(network=MLP((8,)), inference=TRAIN, random_state=0).fit(X, X[:, 0])
    label = Classifier(network=MLP((8,)), inference=TRAIN, random_state=0).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(base, "BLOCK", 1)
    drawn, dist = number.sample(X, 400, random_state=0), number.predict_dist(X)
    assert drawn.shape == (400, 300)
    assert drawn.flags.c_contiguous
    assert (np.abs(drawn.mean(0) - dist.mean.numpy()) < 6 * dist.stddev.numpy() / 20).all()
    labels, p = label.sample(X, 400, random_state=0), label.predict_proba(X)[:, 1]
    assert (np.abs(labels.mean(0) - p) < 6 * np.sqrt(p * (1 - p)) / 20 + 0.01).all()
    assert np.array_equal(number.sample(X, 3, random_state=1), number.sample(X, 3, random_state=1))


def test_positions_of_sequences_stay_in_order(monkeypatch):
    rows = [np.random.default_rng(i).normal(size=(1 + i % 4, 2)) for i in range(150)]
    targets = [row[:, 0] for row in rows]
    model = Regressor(network=LSTM(4, output="each"), inference=TRAIN, random_state=0).fit(rows, targets)
    whole = model.predict(rows), model.log_prob(rows, targets)
    monkeypatch.setattr(base, "BLOCK", 1)
    np.testing.assert_allclose(np.concatenate(model.predict(rows)), np.concatenate(whole[0]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.log_prob(rows, targets), whole[1], rtol=1e-4, atol=1e-5)


def test_memory_does_not_grow_with_the_width_times_the_rows():
    code = """
import resource
import numpy as np
from likely import Regressor
from likely.inference import MAP
from likely.networks import MLP
x = np.zeros((400_000, 2))
model = Regressor(network=MLP((512,)), inference=MAP(epochs=1)).fit(x[:500] + np.eye(500, 2), np.arange(500.0))
model.predict(x[:500])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.predict(x)
model.sample(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 300  # all rows in the widest layer would take 820 MB
