"""The exact softmax: its gradient by automatic differentiation, its optimum by the counts."""

from __future__ import annotations

import numpy as np
import torch

from likely.models.language.co_occurrence import Pairs
from likely.models.language.log_bilinear import softmax_loss_and_grad, train_softmax


def test_the_gradient_is_that_of_automatic_differentiation():
    rng = np.random.default_rng(0)
    vectors, contexts, counts = rng.normal(size=(3, 4)), rng.normal(size=(7, 4)), rng.poisson(2.0, (3, 7)).astype(float)
    loss, *gradients = softmax_loss_and_grad(vectors, contexts, counts)
    given = [torch.from_numpy(part).requires_grad_() for part in (vectors, contexts)]
    value = -(torch.from_numpy(counts) * (given[0] @ given[1].T).log_softmax(1)).sum()
    np.testing.assert_allclose(loss, value.item(), rtol=1e-12)
    for own, other in zip(gradients, torch.autograd.grad(value, given), strict=True):
        np.testing.assert_allclose(own, other.numpy(), rtol=1e-10, atol=1e-12)


def test_wide_vectors_reach_the_entropy_of_the_counts():
    """No table of probabilities is better than the relative frequencies, and these are within reach."""
    rng = np.random.default_rng(1)
    table = 1.0 + rng.poisson(5.0, (6, 6))
    words, neighbours = (part.ravel() for part in np.indices((6, 6)))
    losses = []
    pairs = Pairs(words, neighbours, table.ravel())
    vectors, contexts = train_softmax(pairs, 6, width=6, epochs=1500, rate=0.05, seed=0, report=losses.append)
    frequency = table / table.sum(1, keepdims=True)
    least = -(table * np.log(frequency)).sum() / table.sum()
    assert least - 1e-6 < losses[-1] < least + 1e-3
    scores = torch.from_numpy(vectors @ contexts.T).softmax(1).numpy()
    np.testing.assert_allclose(scores, frequency, atol=0.02)
