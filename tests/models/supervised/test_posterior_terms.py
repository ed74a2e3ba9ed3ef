"""Coefficients of a posterior: its means and quantiles."""

import numpy as np
import pytest
from tests.models.supervised.summary_rows import LABELS, X, Y

from likely import Classifier, Regressor, priors
from likely.core.errors import SpecError
from likely.inference import MAP, NUTS, AdversarialTraining, Ensemble, Exact, Laplace


def test_a_flat_posterior_agrees_with_standard_errors():
    full = Regressor(inference=Exact("full")).fit(X, Y).summary()
    plain = Regressor().fit(X, Y).summary()
    np.testing.assert_allclose(np.column_stack([full.lower, full.upper]), np.column_stack([plain.lower, plain.upper]))
    assert full.p_value is None
    assert full.errors == "posterior"


def test_posteriors_are_told_by_quantiles(seed):
    model = Classifier(prior=priors.Normal(1.0), inference=Laplace()).fit(X, LABELS)
    summary = model.summary(level=0.8)
    drawn = Classifier(prior=priors.Normal(1.0), inference=NUTS(chains=8, draws=150, warmup=200), random_state=seed)
    other = drawn.fit(X, LABELS).summary(level=0.8)
    # two ways to the same posterior: with 1200 draws, spreads are apart by half in less than one run of a million
    assert np.all(np.abs(np.log(summary.standard_error / other.standard_error)) < 0.5)
    assert np.all((summary.lower < summary.estimate) & (summary.estimate < summary.upper))


@pytest.mark.parametrize(
    "inference", [Ensemble(3, by=MAP(epochs=2)), AdversarialTraining(by=Ensemble(2, by=MAP(epochs=1)))]
)
def test_fits_that_are_no_posterior_have_no_standard_errors(inference):
    with pytest.raises(SpecError, match=r"not draws from p\(θ \| data\)"):
        Regressor(inference=inference, random_state=0).fit(X, Y).summary()
