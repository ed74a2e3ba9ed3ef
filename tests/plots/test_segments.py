import numpy as np
import pytest

from likely import plots
from likely.core.errors import DataError
from likely.models.segmentation import Segmented

RARE = np.zeros((4, 6, 3))
RARE[..., 0] = 1.0
RARE[:2, :3] = [0.1, 0.8, 0.1]
RARE[3, 5] = [0.0, 0.0, 1.0]
ANSWER = Segmented((RARE,), np.array(["ground", "cell", "spot"]))


def test_rarer_classes_are_coloured_by_how_sure_they_are():
    ax = plots.segmentation(np.random.default_rng(0).random((3, 4, 6)), ANSWER)
    over = ax.images[1].get_array()
    np.testing.assert_array_equal(over[..., 3] > 0, RARE[..., 0] < 0.5)
    assert over[3, 5, 3] > over[0, 0, 3]
    assert ax.get_title(loc="left") == "25% cell, 4.2% spot"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["cell", "spot"]


def test_errors():
    with pytest.raises(DataError, match="segmentation draws an image and what"):
        plots.segmentation(np.zeros((1, 4, 6)), ANSWER, index=1)
    with pytest.raises(DataError, match=r"image has shape \(1, 5, 6\), and the answer is of \(4, 6\) pixels"):
        plots.segmentation(np.zeros((1, 5, 6)), ANSWER)
