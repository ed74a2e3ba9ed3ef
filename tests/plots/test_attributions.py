import numpy as np
import pytest

from likely import plots
from likely.core.errors import DataError
from likely.theory.explain import Attribution

VALUES = np.array([[1.0, -3.0, 0.5], [2.0, 1.0, 0.0]])
TABLE = Attribution(VALUES, "shapley", "log_odds", np.array(["yes", "no"]), np.array([2.0, 1.0]), X=VALUES + 1)


def test_one_row_has_a_bar_for_each_column_largest_on_top():
    ax = plots.attribution(TABLE, rows=[0], names=["a", "b", "c"])
    assert [bar.get_width() for bar in ax.patches] == [0.5, 1.0, -3.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c = 1.5", "a = 2", "b = -2"]
    assert ax.get_title(loc="left") == "b counts most: −3 of the log-odds of yes 2"


def test_several_rows_have_the_mean_size():
    ax = plots.attribution(TABLE)
    assert [bar.get_width() for bar in ax.patches] == [0.25, 1.5, 2.0]
    assert "mean size over 2 rows" in ax.texts[0].get_text()


def test_heat_lies_over_each_picture():
    rng = np.random.default_rng(0)
    for channels in (1, 3):
        X = rng.random((3, channels, 6, 5))
        values = rng.normal(size=(3, 1, 6, 5))
        explained = Attribution(values, "occlusion", "log_odds", np.array(["p", "q", "p"]), np.zeros(3), X=X)
        ax = plots.attribution(explained, rows=[0, 2])
        assert len(ax.images) == 6
        assert [text.get_text() for text in ax.texts if text.get_text() in "pq"] == ["p", "p"]
        heat = ax.images[2].get_array()
        assert heat.shape == (6, 5, 4)
        blue = heat[..., 2] > heat[..., 0]
        np.testing.assert_array_equal(blue, values[0, 0] >= 0)


def test_errors():
    with pytest.raises(DataError, match="attribution draws what"):
        plots.attribution([1.0])
    with pytest.raises(DataError, match=r"rows=\[7\] must name rows that were explained, from 0 to 1"):
        plots.attribution(TABLE, rows=[7])
    images = Attribution(np.zeros((2, 1, 4, 4)), "occlusion", "mean", None, np.zeros(2))
    with pytest.raises(DataError, match="X has shape None; the pictures"):
        plots.attribution(images)
    with pytest.raises(DataError, match="tables and images are drawn"):
        plots.attribution(Attribution(np.zeros((2, 3, 4)), "occlusion", "mean", None, np.zeros(2)))
