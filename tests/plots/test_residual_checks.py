import numpy as np
import pytest
from scipy.stats import norm

from likely import plots
from likely.core.errors import DataError
from likely.evaluate import QuantileResiduals

NORMAL = norm.ppf((np.arange(200) + 0.5) / 200)


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


@pytest.mark.parametrize(
    ("values", "p_value", "finding"),
    [
        (NORMAL, 0.9, "Residuals are as a normal distribution has them"),
        (NORMAL + 1, 0.0, "Predictions are too low: residuals have mean 1.00"),
        (NORMAL - 1, 0.0, "Predictions are too high"),
        (2 * NORMAL, 0.0, "Targets vary more than the model says: residuals have standard deviation"),
        (0.5 * NORMAL, 0.0, "Targets vary less"),
        (np.sign(NORMAL), 0.0, "The shape of the distribution is off"),
    ],
)
def test_quantiles_say_what_is_off(values, p_value, finding):
    ax = plots.qq(QuantileResiduals(values, np.zeros(200), p_value))
    assert title(ax).startswith(finding)
    drawn = np.sort(np.concatenate([line.get_ydata() for line in ax.get_lines()[1:]]))
    np.testing.assert_allclose(drawn, np.sort(values))


def test_a_trend_over_the_prediction_is_said():
    fitted = np.random.default_rng(0).permutation(200.0 * np.arange(200) / 200)
    plain = plots.quantile_residuals(QuantileResiduals(NORMAL, fitted, 0.9), label="visits")
    assert title(plain) == "Residuals show no trend"
    assert plain.get_xlabel() == "predicted visits"
    bent = plots.quantile_residuals(QuantileResiduals(NORMAL, np.arange(200.0), 0.9))
    assert title(bent).startswith("Residuals depend on the prediction")


def test_other_things_are_refused():
    with pytest.raises(DataError, match=r"qq draws what evaluate.quantile_residuals returns; found a list"):
        plots.qq([])
