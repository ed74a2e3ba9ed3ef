"""Telling neighbours from noise: what its optimum is, and what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from likely.models.language.co_occurrence import co_occurrences
from likely.models.language.negative_sampling import alias_table, train_by_noise
from likely.models.language.sentences import read_sentences


def test_the_alias_table_holds_the_probabilities():
    weight = np.random.default_rng(0).gamma(0.5, size=50)
    threshold, other = alias_table(weight)
    chance = threshold / 2**32
    total = chance.copy()
    np.add.at(total, other, 1 - chance)
    np.testing.assert_allclose(total / 50, weight / weight.sum(), atol=1e-9)


def trained(text, **changes):
    losses = []
    given = {"cbow": False, "width": 8, "window": 1, "negative": 2, "epochs": 60, "rate": 0.05, "subsample": 0.0}
    given |= {"power": 1.0, "seed": 0, "report": losses.append} | changes
    return *train_by_noise(text, **given), losses


@pytest.fixture
def text():
    """A chain of six words, each of which follows each."""
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.full(6, 2.0), 6)
    words = [0]
    for _ in range(20_000):
        words.append(rng.choice(6, p=moves[words[-1]]))
    return read_sentences([["abcdef"[word] for word in words[i : i + 100]] for i in range(0, 20_000, 100)], 1)


def test_products_are_pmi_less_log_k(text):
    """SGD ends near the optimum: within 0.15 on average, where PMI − log k spreads over 0.4."""
    vectors, contexts, _ = trained(text)
    pairs = co_occurrences(text, 1, by_distance=False)
    table = np.zeros((6, 6))
    table[pairs.words, pairs.neighbours] = pairs.counts
    noise = text.counts / text.counts.sum()
    expected = np.log(table / table.sum(1, keepdims=True) / noise) - np.log(2)
    products = vectors @ contexts.T
    assert np.abs(products - expected).mean() < 0.15
    assert np.corrcoef(products.ravel(), expected.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("cbow", [False, True])
def test_the_loss_is_counted_as_it_is_met(text, cbow):
    """Before anything is learned every σ is ½: a true word and two random ones cost 3 log 2."""
    _, contexts, losses = trained(text, cbow=cbow, epochs=1, rate=1e-12)
    assert np.abs(contexts).max() < 1e-6
    assert losses[0] == pytest.approx(3 * np.log(2), rel=1e-5)
    assert trained(text, cbow=cbow, epochs=20)[2][-1] < losses[0] - 0.05


@pytest.mark.parametrize("cbow", [False, True])
def test_the_same_seed_gives_the_same_bits(text, cbow):
    one, two, other = (trained(text, cbow=cbow, epochs=2, seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_sentences_without_weight_teach_nothing(text):
    """Neither vectors nor the loss know of them."""
    half = text._replace(weight=np.r_[np.ones(100), np.zeros(100)])
    cut = read_sentences([[text.vocabulary[t] for t in text.tokens[:10_000]]], 1)
    vectors, _, losses = trained(half, epochs=3)
    assert np.isfinite(vectors).all()
    assert losses[-1] == pytest.approx(trained(cut, epochs=3)[2][-1], rel=0.1)
