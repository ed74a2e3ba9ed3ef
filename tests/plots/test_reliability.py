import numpy as np
import pytest

from likely import Classifier, Regressor, evaluate, plots
from likely.core.errors import DataError
from likely.evaluate import PIT, Coverage, Reliability


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def reliability(frequency):
    confidence = np.array([0.1, 0.5, 0.9])
    return Reliability(confidence, np.array(frequency), np.full(3, 0.02), np.array([50, 60, 70]), 0.05)


@pytest.mark.parametrize(
    ("frequency", "finding"),
    [
        ([0.1, 0.5, 0.9], "Confidence matches what happens"),
        ([0.05, 0.35, 0.7], "Confidence is too high by"),
        ([0.3, 0.6, 0.95], "Confidence is too low by"),
        ([0.2, 0.5, 0.83], "Confidence is right on average but not at each level"),
    ],
)
def test_reliability_says_which_way_it_is_off(frequency, finding):
    ax = plots.calibration(reliability(frequency))
    assert title(ax).startswith(finding)
    drawn = [(x, y) for artist in ax.get_lines()[1:] for x, y in zip(*artist.get_data(), strict=True)]
    assert sorted(drawn) == list(zip([0.1, 0.5, 0.9], frequency, strict=True))
    counts = ax.child_axes[0]
    assert [bar.get_height() for bar in counts.patches] == [50, 60, 70]


def pit(values):
    from scipy.stats import kstest

    test = kstest(values, "uniform")
    return PIT(np.asarray(values), test.statistic, test.pvalue)


@pytest.mark.parametrize(
    ("transform", "finding"),
    [
        (lambda u: u, "Forecast distributions fit"),
        (lambda u: np.where(u < 0.5, u**2 * 2, 1 - 2 * (1 - u) ** 2), "Forecasts are too narrow"),
        (lambda u: 0.5 + (u - 0.5) * 0.5, "Forecasts are too wide"),
        (lambda u: u**0.5, "Forecasts are too low: targets fall above them"),
        (lambda u: u**2, "Forecasts are too high: targets fall below them"),
    ],
)
def test_pit_says_what_the_shape_means(transform, finding):
    values = transform((np.arange(1000) + 0.5) / 1000)
    ax = plots.calibration(pit(values), bins=10)
    assert title(ax).startswith(finding)
    heights = [bar.get_height() for bar in ax.patches[:10]]
    np.testing.assert_allclose(heights, np.histogram(values, 10, (0, 1), density=True)[0])


def test_coverage_draws_measured_over_promised():
    levels, covered = np.array([0.5, 0.9]), np.array([0.4, 0.91])
    ax = plots.coverage(Coverage(levels, covered, np.array([0.02, 0.01]), np.ones(2), 900))
    drawn = next(
        artist for artist in ax.get_lines() if len(artist.get_xdata()) == 2 and artist.get_label() != "promised"
    )
    np.testing.assert_array_equal(drawn.get_xdata(), levels)
    np.testing.assert_array_equal(drawn.get_ydata(), covered)
    assert {text.get_text() for text in ax.texts} >= {"40%", "91%"}
    assert title(ax) == "90% intervals cover 91%; those of 50% miss their promise"


def test_other_things_are_refused():
    with pytest.raises(DataError, match=r"takes model, X and y itself; found a dict"):
        plots.calibration({})


def test_a_model_with_rows_and_targets_is_measured_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1))
    for model, y in ((Regressor(), X[:, 0] + rng.normal(size=80)), (Classifier(), X[:, 0] + rng.normal(size=80) > 0)):
        fitted = model.fit(X, y)
        assert title(plots.calibration(fitted, X, y)) == title(plots.calibration(evaluate.calibration(fitted, X, y)))
        with pytest.raises(
            DataError, match=r"takes model, X and y itself; found a \w+ without its rows X and targets y"
        ):
            plots.calibration(fitted)
