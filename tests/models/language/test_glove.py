"""Least squares on logarithms of counts, where its optimum is known."""

from __future__ import annotations

import numpy as np
import pytest

from likely.models.language.co_occurrence import Pairs
from likely.models.language.glove import train_glove


def full(size, seed=0):
    """All pairs of a few words, with counts that have their full weight."""
    words, neighbours = (part.ravel() for part in np.indices((size, size)))
    return Pairs(words, neighbours, np.exp(np.random.default_rng(seed).normal(size=size**2)))


@pytest.mark.parametrize("width", [1, 2, 6])
def test_it_reaches_the_closed_form_of_a_full_table(width):
    """With all weights 1 the optimum is the best table of rank `width` beside effects of rows and columns."""
    pairs, losses = full(6), []
    train_glove(pairs, 6, width=width, epochs=4000, rate=0.1, largest=1e-9, seed=0, report=losses.append)
    table = np.log(pairs.counts).reshape(6, 6)
    centred = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    rest = (np.linalg.svd(centred, compute_uv=False)[width:] ** 2).sum() / 36
    assert losses[-1] == pytest.approx(rest, rel=0.05, abs=1e-4)


def test_rare_pairs_count_less():
    """A pair of count x has weight (x / x_max)^¾, so that the mean loss of the start falls with it."""
    pairs, first = full(5), {}
    for largest in (1e-9, 100.0):
        losses = []
        train_glove(pairs, 5, width=2, epochs=1, rate=1e-9, largest=largest, seed=0, report=losses.append)
        first[largest] = losses[0]
    weight = np.minimum(1.0, (pairs.counts / 100) ** 0.75)
    expected = (weight * np.log(pairs.counts) ** 2).mean() / (np.log(pairs.counts) ** 2).mean()
    assert first[100.0] / first[1e-9] == pytest.approx(expected, rel=0.3)
