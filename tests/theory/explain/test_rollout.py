"""Attention roll-out: the product of what the layers look at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier
from likely.core.errors import DataError
from likely.theory.explain import attention_rollout


def test_roll_out_is_the_product_of_the_layers(vit, stripes):
    """Row of the class token in Π (½ A + ½ I), by hand; what is left to the token itself is at least 2⁻ᴸ."""
    X = stripes[0]
    explained = attention_rollout(vit, X[:5])
    patches = explained.values[:, 0, ::4, ::4].reshape(5, 9)
    np.testing.assert_array_equal(explained.values[:, 0, 1::4, 2::4].reshape(5, 9), patches)
    network = vit.posterior_.module_of(0).eval()
    with torch.no_grad():
        encoder, net = network.network.encoder, network.network
        patched = net.embed(net.patches(network.inputs(torch.tensor(X[:5]))))
        steps, _, _ = encoder._entered(patched, None)
        total = torch.eye(10)
        for block in encoder.blocks:
            weights = block.attention.weights(block.norms[0](steps)).mean(1)
            total = (0.5 * weights + 0.5 * torch.eye(10)) @ total
            steps = block(steps)
    np.testing.assert_allclose(patches, total[:, 0, 1:], atol=1e-5)
    assert (patches.sum(1) < 1 - 0.25 + 1e-6).all()
    torch.testing.assert_close(total.sum(-1), torch.ones(5, 10))


def test_roll_out_of_tokens_of_one_length():
    texts, y = ["a b c", "c b a", "b b c", "a c a"] * 2, [0, 1, 0, 1] * 2
    network = "transformer(width=4, heads=1, layers=1)"
    model = Classifier(network=network, inference="map(epochs=1)", random_state=0).fit(texts, y)
    seen = attention_rollout(model, texts).values
    assert seen.shape == (8, 3)
    assert (seen.sum(1) <= 0.5 + 1e-6).all()  # one layer leaves the class token half of itself
    with pytest.raises(DataError, match="sequences of 2 to 3 steps"):
        attention_rollout(model, ["a b", "a b c"])
