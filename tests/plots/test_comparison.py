import numpy as np
import pytest

from likely import plots
from likely.evaluate import BiasVariance, Leaderboard
from likely.evaluate.comparison import Entry


def entry(name, score, difference=0.0, error=0.0):
    return Entry(name, score, 0.03, difference, error, 0.1)


def scores(ax):
    return [float(line.get_xdata()[0]) for line in ax.get_lines() if line.get_marker() == "o"]


def test_the_leaderboard_draws_scores_and_differences():
    board = Leaderboard((entry("net", -0.3), entry("line", -0.5, -0.2, 0.02), Entry("broken", error="DataError: no")))
    ax = plots.leaderboard(board)
    assert scores(ax) == [-0.3, -0.5]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["net", "line", "broken"]
    notes = [text.get_text() for text in ax.texts]
    assert {"best", "−0.200 ± 0.020", "failed"} <= set(notes)
    assert ax.get_title(loc="left") == "net leads by 0.200 ± 0.020"
    assert ax.yaxis_inverted()


@pytest.mark.parametrize(
    ("entries", "finding"),
    [
        ((entry("a", -0.3), entry("b", -0.31, -0.01, 0.02)), "a and b cannot be told apart (difference 0.010 ± 0.020)"),
        ((entry("a", -0.3),), "a: -0.300 ± 0.030"),
        ((Entry("a", error="ValueError: x"),), "Every model failed"),
    ],
)
def test_the_title_says_no_more_than_is_known(entries, finding):
    assert plots.leaderboard(Leaderboard(entries)).get_title(loc="left").replace("\n", " ") == finding


def test_an_impossible_score_has_no_point():
    board = Leaderboard((entry("a", -0.3), Entry("b", -np.inf, np.nan, -np.inf, np.nan, 0.1)))
    ax = plots.leaderboard(board)
    assert scores(ax) == [-0.3]
    assert "−inf" in [text.get_text() for text in ax.texts]


def parts(bias_squared, variance):
    return BiasVariance(bias_squared, variance, 1.0, 1.0 + bias_squared + variance, 0.05, 50)


def test_bars_stack_to_the_total():
    results = {1: parts(0.5, 0.1), 3: parts(0.01, 0.2), 9: parts(0.0, 0.7)}
    ax = plots.bias_variance(results, x_label="degree")
    tops = {}
    for bar in ax.patches:
        middle = round(bar.get_x() + bar.get_width() / 2)
        tops[middle] = max(tops.get(middle, 0), bar.get_y() + bar.get_height())
    np.testing.assert_allclose(list(tops.values()), [r.total for r in results.values()])
    measured = next(line for line in ax.get_lines() if line.get_marker() == "o")
    np.testing.assert_allclose(measured.get_ydata(), [r.error for r in results.values()])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "9"]
    assert ax.get_title(loc="left").replace("\n", " ") == "Least error at degree 3: 1.21, of which noise is 1"
    assert {"noise", "bias²", "variance"} <= {text.get_text() for text in ax.texts}


def test_one_answer_is_one_bar():
    ax = plots.bias_variance(parts(0.5, 0.25))
    assert ax.get_title(loc="left").replace("\n", " ") == "bias² + variance + noise = 1.75, measured 1.75"
    assert len(ax.patches) == 3
