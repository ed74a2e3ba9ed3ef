import numpy as np
import pytest

from likely import plots
from likely.core.errors import DataError

MATRIX = np.array([[50, 0, 0], [0, 46, 4], [0, 3, 47]])


def test_cells_hold_counts_and_colour_is_the_share_of_the_row():
    ax = plots.confusion(MATRIX, ["setosa", "versicolor", "virginica"])
    np.testing.assert_allclose(ax.images[0].get_array(), MATRIX / MATRIX.sum(1, keepdims=True))
    cells = {text.get_position(): text.get_text() for text in ax.texts}
    assert cells[(2, 1)] == "4"  # column: predicted, row: actual
    assert cells[(1, 2)] == "3"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted class", "actual class")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["setosa", "versicolor", "virginica"]


def test_the_worst_mistake_is_named():
    ax = plots.confusion(MATRIX)
    assert ax.get_title(loc="left") == "95.3% are right"
    assert "most often mistaken: 1 for 2 (4)" in [text.get_text().replace("\n", " ") for text in ax.texts]
    assert plots.confusion(np.eye(3)).get_title(loc="left") == "100% are right"


def test_many_classes_have_no_text_and_a_class_without_rows_is_no_error():
    matrix = np.diag([*range(1, 20), 0])
    assert not plots.confusion(matrix).texts


def test_errors():
    with pytest.raises(DataError, match=r"matrix must be square, actual by predicted; found shape \(2, 3\)"):
        plots.confusion(np.ones((2, 3)))
    with pytest.raises(DataError, match="labels must name each of the 3 classes; found 2"):
        plots.confusion(MATRIX, ["a", "b"])
