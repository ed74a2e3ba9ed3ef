"""Codes of rows by an encoder: their distribution, means and reconstructions agree."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from likely import VAE
from likely.core.errors import DataError
from likely.inference import MAP, Ensemble
from likely.models.generative import base
from likely.networks import MLP

ROWS = np.random.default_rng(0).normal(size=(40, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.5], [0.0, 0.0, 0.2]])
BRIEF = MAP(epochs=2)


def fitted(inference=BRIEF):
    return VAE(latent=2, encoder=MLP((8,)), decoder=MLP((8,)), inference=inference, random_state=0).fit(ROWS)


def test_transform_is_the_mean_of_the_posterior():
    model = fitted()
    posterior = model.posterior(ROWS)
    np.testing.assert_allclose(model.transform(ROWS), posterior.mean, rtol=1e-5, atol=1e-6)
    assert (posterior.batch_shape, posterior.event_shape) == ((40,), (2,))
    assert bool((posterior.variance > 0).all())


def test_members_have_a_mixture_whose_mean_is_that_of_their_means():
    model = fitted(Ensemble(3, by=MAP(epochs=2)))
    posterior = model.posterior(ROWS)
    parts = posterior.component_distribution.mean
    torch.testing.assert_close(posterior.mean, parts.mean(1))
    best = int(model.posterior_.weights.argmax())
    np.testing.assert_allclose(model.transform(ROWS), parts[:, best], rtol=1e-5, atol=1e-6)


def test_reconstruction_goes_by_way_of_the_code():
    model = fitted()
    np.testing.assert_allclose(model.reconstruct(ROWS), model.inverse_transform(model.transform(ROWS)))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((3, 5)), r"Z has shape \(3, 5\); codes are \(n, 2\)"),
        ([[np.inf, 0.0]], "Z has values that are not finite"),
    ],
)
def test_codes_that_are_none_are_named(codes, message):
    with pytest.raises(DataError, match=message):
        fitted().inverse_transform(codes)


def test_blocks_give_the_codes_of_the_whole(monkeypatch):
    model = fitted()

    def answers():
        yield model.transform(ROWS)
        yield model.posterior(ROWS).variance.numpy()
        yield model.reconstruct(ROWS)

    whole = list(answers())
    monkeypatch.setattr(base, "BLOCK", 1)  # blocks of 16 rows, and a last one of 8
    for answer, expected in zip(answers(), whole, strict=True):
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


ASK = """
import resource, sys
import subprocess
import sys

import numpy as np
from likely import VAE, Autoencoder, Flow
from likely.inference import MAP
from likely.networks import MLP

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

wide, brief = MLP((512,)), MAP(epochs=1)
X, many = np.random.default_rng(0).normal(size=(100, 2)), np.zeros((200_000, 2))
models = [
    (Autoencoder(1, wide, wide, inference=brief), ("transform", "reconstruct", "score")),
    (VAE(latent=1, encoder=wide, decoder=wide, inference=brief), ("transform", "posterior")),
    (Flow("affine", layers=2, network=wide, inference=brief), ("transform", "inverse_transform", "trajectory")),
]
for model, names in models:
    model.fit(X)
    for name in names:
        getattr(model, name)(many[:10])
        before = peak()
        getattr(model, name)(many)
        print(type(model).__name__, name, peak() - before)
"""


def test_codes_of_many_rows_need_no_memory_beyond_a_block():
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    extra = {tuple(line.split()[:2]): float(line.split()[2]) for line in done.stdout.splitlines()}
    assert len(extra) == 8
    # all rows in the widest layer would take 390 MB
    assert {question: size for question, size in extra.items() if size > 150} == {}
