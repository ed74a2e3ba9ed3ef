import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from likely.core.errors import DataError
from likely.evaluate import bias_variance

POINTS = np.linspace(-1, 1, 21)[:, None]
NOISE = 0.3


def truth(X):
    return np.sin(3 * X[:, 0])


def sample_data(rng):
    X = rng.uniform(-1, 1, size=(30, 1))
    return X, truth(X) + NOISE * rng.normal(size=30)


@pytest.mark.parametrize("degree", [0, 1, 3, 6])
def test_the_three_sum_to_the_measured_error(degree, seed):
    """A z-score beyond 4 has probability 6e-5; the noise draws are the only difference between the two sides."""
    model = make_pipeline(PolynomialFeatures(degree), LinearRegression())
    result = bias_variance(
        model, sample_data, truth, POINTS, noise_variance=NOISE**2, repeats=200, random_state=10 * seed + degree
    )
    assert abs(result.total - result.error) < 4 * result.error_standard_error
    assert result.noise == pytest.approx(NOISE**2)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_least_squares_on_a_fixed_design_has_its_closed_form(degree, seed):
    """With H the projection on p columns: variance = σ² p / n, bias² = ‖f − Hf‖² / n; χ² with p(R − 1) degrees.

    4 standard errors of the one; of the other, whose tail is that of χ² with p degrees, 12: one in 10⁴ runs fails.
    """
    repeats, n, p = 400, len(POINTS), degree + 1
    f = truth(POINTS)
    columns = POINTS ** np.arange(p)
    misfit = f - columns @ np.linalg.lstsq(columns, f)[0]
    result = bias_variance(
        make_pipeline(PolynomialFeatures(degree), LinearRegression()),
        lambda rng: (POINTS, f + NOISE * rng.normal(size=n)),
        truth,
        POINTS,
        noise_variance=NOISE**2,
        repeats=repeats,
        random_state=seed,
    )
    variance, bias_squared = NOISE**2 * p / n, (misfit**2).mean()
    assert result.variance == pytest.approx(variance, rel=4 * np.sqrt(2 / (p * (repeats - 1))))
    # H ε is orthogonal to the misfit, so what is left of bias² is a centred χ² with p degrees
    assert result.bias_squared == pytest.approx(bias_squared, abs=12 * variance / repeats * np.sqrt(2 / p))


def test_the_mean_has_its_textbook_parts(seed):
    """ȳ of n draws of Normal(0, 1) where f(x) = 2 is said to be the truth: bias² = 4, variance = 1/n (4 s.e.)."""
    result = bias_variance(
        DummyRegressor(),
        lambda rng: (np.zeros((25, 1)), rng.normal(size=25)),
        lambda X: np.full(len(X), 2.0),
        np.zeros((3, 1)),
        noise_variance=1.0,
        repeats=2000,
        random_state=seed,
    )
    assert result.bias_squared == pytest.approx(4, abs=4 * 4 * 0.2 / np.sqrt(2000))
    assert result.variance == pytest.approx(1 / 25, rel=4 * np.sqrt(2 / 2000))


def test_bias_is_not_inflated_by_few_repeats(seed):
    """With an unbiased model and 3 repeats, the naive bias² has mean variance/3; ours has mean 0.

    Over 200 estimates the naive mean is 10 standard errors from 0; ours is beyond 4.5 in less than one of 10⁴ runs.
    """
    model = LinearRegression()
    draws = [
        bias_variance(
            model,
            lambda rng: (X := rng.normal(size=(10, 1)), X[:, 0] + rng.normal(size=10)),
            lambda X: X[:, 0],
            np.array([[0.5]]),
            noise_variance=1.0,
            repeats=3,
            random_state=own,
        ).bias_squared
        for own in range(200 * seed, 200 * seed + 200)
    ]
    assert abs(np.mean(draws)) < 4.5 * np.std(draws, ddof=1) / np.sqrt(len(draws))


def test_unknown_noise_is_estimated_from_the_training_sets(seed):
    """Within 4 standard errors, which are passed once in 16,000 runs."""
    result = bias_variance(LinearRegression(), sample_data, truth, POINTS, repeats=200, random_state=seed)
    spread = NOISE**2 * np.sqrt(2 / (30 * 200))
    assert result.noise == pytest.approx(NOISE**2, abs=4 * spread)


def test_errors():
    with pytest.raises(DataError, match="repeats must be 2 or more"):
        bias_variance(LinearRegression(), sample_data, truth, POINTS, repeats=1)
    with pytest.raises(DataError, match="noise_variance must be 0 or more; found -1"):
        bias_variance(LinearRegression(), sample_data, truth, POINTS, repeats=2, noise_variance=-1.0)
