import numpy as np
import pytest
from matplotlib.patches import Rectangle

from likely import plots
from likely.core.errors import DataError
from likely.evaluate import average_precision
from likely.models.detection.detections import Detections

CELLS = Detections(
    np.array([[2.0, 3.0, 8.0, 9.0], [10.0, 1.0, 14.0, 5.0]]),
    np.array(["red", "white"]),
    np.array([0.9, 0.4]),
    np.array([[0.5, 1.0, 1.5, 2.0], [0.0, 0.0, 0.0, 0.0]]),
)


def rectangles(ax, *, filled):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_fill() == filled]


@pytest.mark.parametrize("shape", [(12, 16), (1, 12, 16), (3, 12, 16), (12, 16, 3)])
def test_boxes_lie_where_they_were_found_and_bands_are_as_wide_as_scales(shape):
    ax = plots.detections(np.random.default_rng(0).random(shape), CELLS, bands=1.0)
    outlines = [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in rectangles(ax, filled=False)]
    assert outlines == [(2, 3, 6, 6), (10, 1, 4, 4)]
    bands = [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in rectangles(ax, filled=True)][:4]
    assert bands == [(1.5, 3, 1, 6), (6.5, 3, 3, 6), (2, 2, 6, 2), (2, 7, 6, 4)]
    assert ax.get_xlim() == (0, 16)
    assert ax.get_ylim() == (12, 0)
    assert [text.get_text() for text in ax.texts[:2]] == ["red 0.90", "white 0.40"]
    assert ax.get_title(loc="left") == "1 red, 1 white"


def test_nothing_and_the_truth():
    ax = plots.detections(np.zeros((12, 16), np.uint8), CELLS.above(1.0), truth=[[1, 1, 5, 5]])
    assert ax.get_title(loc="left") == "nothing is detected"
    assert len(ax.patches) == 1
    with pytest.raises(DataError, match=r"image has shape \(2, 2, 12, 16\)"):
        plots.detections(np.zeros((2, 2, 12, 16)), CELLS)


def test_precision_falls_with_recall():
    answers = [([[0, 0, 10, 10], [0, 0, 10, 9], [20, 0, 30, 8]], ["cell"] * 3, [0.9, 0.8, 0.7])]
    measured = average_precision(answers, [[[0, 0, 10, 10], [20, 0, 30, 10]]], [["cell", "cell"]])
    ax = plots.precision_recall(measured)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), measured.precisions[0, 0])
    assert ax.get_title(loc="left") == "mAP 0.835 at an IoU of 0.5 or more"
    assert "cell 0.835" in [text.get_text() for text in ax.texts]
    with pytest.raises(DataError, match=r"give what evaluate\.average_precision returns"):
        plots.precision_recall(0.5)
