import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from torch.distributions import Normal, Poisson


class Known(RegressorMixin, BaseEstimator):
    """A forecaster that needs no fit: y ~ Normal(x + shift, scale), or Poisson(exp x)."""

    def __init__(self, scale=1.0, shift=0.0, counts=False):
        self.scale = scale
        self.shift = shift
        self.counts = counts

    def fit(self, X, y, sample_weight=None):
        self.fitted_ = True
        return self

    def predict_dist(self, X):
        x = torch.as_tensor(np.asarray(X)[:, 0], dtype=torch.float64)
        return Poisson(x.exp()) if self.counts else Normal(x + self.shift, torch.full_like(x, self.scale))

    def predict(self, X):
        return self.predict_dist(X).mean.numpy()

    def predict_interval(self, X, level=0.9):
        tail = torch.tensor((1 - level) / 2, dtype=torch.float64)
        forecast = self.predict_dist(X)
        return forecast.icdf(tail).numpy(), forecast.icdf(1 - tail).numpy()

    def log_prob(self, X, y):
        y = torch.as_tensor(np.asarray(y), dtype=torch.float64)
        return self.predict_dist(X).log_prob(y.nan_to_num(0.0)).where(~y.isnan(), 0.0).numpy()


@pytest.fixture
def known():
    """The class of forecasters that know the truth, or a wrong version of it."""
    return Known


@pytest.fixture
def draws(seed):
    """Rows from the truth of `known`: y = x + ε with ε standard normal."""

    def sample(count, seed=seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(count, 1))
        return X, X[:, 0] + rng.normal(size=count)

    return sample
