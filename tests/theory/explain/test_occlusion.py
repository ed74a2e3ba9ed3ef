"""What is lost where a part is covered: of arrays, of frames as they are, and of the pixels of an answer."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.core.errors import DataError
from likely.inference import MAP
from likely.networks import UNet
from likely.theory.explain import occlusion


def test_the_pixels_of_an_answer_are_chosen():
    """Of one pixel nothing is lost where it does not see; a region is the mean over its pixels."""
    X = np.random.default_rng(0).normal(size=(8, 1, 8, 8)).astype(np.float32)
    model = Classifier(network=UNet((4,)), inference=MAP(epochs=3), random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    rows = X[:2]
    one, other = (occlusion(model, rows, 1, window=1, stride=1, at=at).values for at in ((1, 1), (6, 6)))
    assert one.shape == (2, 1, 8, 8)
    np.testing.assert_allclose(one[:, 0, 6:, 6:], 0, atol=1e-5)
    assert np.abs(one[:, 0, 1, 1]).min() > 1e-3
    mask = np.zeros((8, 8), bool)
    mask[1, 1] = mask[6, 6] = True
    both = occlusion(model, rows, 1, window=1, stride=1, at=mask).values
    np.testing.assert_allclose(both, (one + other) / 2, atol=1e-4)
    numbers = Regressor(network=UNet((4,)), inference=MAP(epochs=3), random_state=0).fit(X, X[:, 0])
    np.testing.assert_allclose(occlusion(numbers, rows, at=(3, 4)).output, numbers.predict(rows)[:, 3, 4], rtol=1e-5)
    with pytest.raises(DataError, match=r"labels at positions \(8, 8\); say which of them are explained: at=\(row"):
        occlusion(model, rows)
    with pytest.raises(DataError, match=r"at=\(8, 0\) must be a position inside \(8, 8\)"):
        occlusion(model, rows, at=(8, 0))


def test_occlusion_covers_what_the_window_holds():
    """f is the sum of the pixels: each window loses what it holds, and a window as large as the image all of it."""
    X = np.arange(24.0).reshape(1, 1, 4, 6)

    def total(rows):
        return rows.sum((1, 2, 3))

    np.testing.assert_allclose(occlusion(total, X, window=1, stride=1).values, X)
    np.testing.assert_allclose(occlusion(total, X, window=(4, 6)).values, np.full((1, 1, 4, 6), X.sum()))
    lost = occlusion(total, X, window=(1, 6), stride=1, baseline=1.0).values[0, 0]
    np.testing.assert_allclose(lost, np.repeat((X[0, 0].sum(1) - 6)[:, None], 6, 1))
