import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from likely import PCA, FactorAnalysis, Perceptron
from likely.core.errors import DataError
from likely.plots.components import components

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    RNG.normal(size=(80, 2)) @ [[3.0, 1.0, 0.0, 2.0], [0.0, 1.0, 2.0, -1.0]] + 0.3 * RNG.normal(size=(80, 4)),
    columns=["a", "b", "c", "d"],
)


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def test_bars_are_the_shares_of_variance_and_the_line_their_sum():
    model = PCA().fit(X)
    ax = components(model)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], model.explained_variance_ratio_)
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), np.cumsum(model.explained_variance_ratio_))
    assert title(ax).startswith("The first 2 components hold 9")


def test_shares_of_factors_leave_out_the_noise():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 1)) * [1.0, -2.0, 0.5, 1.5] + rng.normal(size=(300, 4))
    model = FactorAnalysis(1).fit(rows)
    ax = components(model)
    covariance = model.get_covariance()
    expected = 1 - model.noise_variance_.sum() / np.trace(covariance)
    assert ax.patches[0].get_height() == pytest.approx(expected)
    assert not ax.get_lines()


def test_rows_are_drawn_at_their_scores_with_an_arrow_for_each_column():
    model = PCA(2).fit(X)
    ax = components(model, X)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), model.transform(X))
    assert {"a", "b", "c", "d"} <= {text.get_text() for text in ax.texts}
    ends = {text.get_text(): np.array(text.xy) for text in ax.texts}
    assert np.sign(ends["a"][0]) == np.sign(model.components_[0, 0])
    assert title(ax).startswith("The first two components hold 9")


@pytest.mark.parametrize("scale", [(1, 1, 1, 1), (1, 50, 1, 0.1)])
def test_every_arrow_and_its_name_lie_inside_the_axes(scale):
    """An annotation whose place is outside the axes is not drawn; neither are columns of the smaller component then."""
    rows = load_iris().data * scale
    ax = components(PCA(2).fit(rows), rows)
    ax.figure.draw_without_rendering()
    arrows = [text for text in ax.texts if text.arrow_patch is not None and not text.get_text()]
    names = [text for text in ax.texts if text.get_text().startswith("column ")]
    assert (len(arrows), len(names)) == (4, 4)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for x, y in [text.xy for text in arrows + names]:
        assert left < x < right
        assert bottom < y < top


def test_names_of_columns_lie_on_no_row_where_there_is_room(under):
    rows = load_iris().data
    model = PCA(2).fit(rows)
    ax = components(model, rows)
    assert under(ax, {f"column {i}" for i in range(4)}, model.transform(rows)) == [0, 0, 0, 0]


def test_many_columns_show_those_that_weigh_most_and_long_names_are_cut():
    rows = RNG.normal(size=(40, 35)) * np.linspace(3, 0.1, 35)
    names = [f"a very long name of a column {i}" for i in range(35)]
    ax = components(PCA(2).fit(pd.DataFrame(rows, columns=names)), pd.DataFrame(rows, columns=names))
    assert sum(text.get_text() == "a very long name of a c…" for text in ax.texts) == 8
    assert any("the 8 columns that weigh most" in text.get_text() for text in ax.texts)
    bars = components(PCA().fit(rows))
    assert len(bars.patches) == 30
    assert any("the first 30 of 35 components" in text.get_text() for text in bars.texts)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(DataError, match=r"drawn along two components, but the model has 1; leave X out"):
        components(PCA(1).fit(X), X)
    with pytest.raises(DataError, match=r"components draws a PCA or a FactorAnalysis; found a Perceptron"):
        components(Perceptron().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(NotFittedError):
        components(PCA())
