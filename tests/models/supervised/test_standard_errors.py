"""Standard errors from the information of the rows, and robust ones: those of statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from tests.models.supervised.summary_rows import GROUPS, LABELS, THREE, WITH_ONE, X, Y, assert_same

from likely import Classifier, Regressor, likelihoods
from likely.core.errors import ConvergenceWarning, SpecError
from likely.likelihoods import Ordinal


@pytest.mark.parametrize("errors", ["HC0", "HC1", "HC2", "HC3"])
def test_robust_errors_are_those_of_statsmodels(errors):
    summary = Regressor().fit(X, Y).summary(X, Y, errors=errors)
    assert_same(summary, sm.OLS(Y, WITH_ONE).fit(cov_type=errors))


def test_clustered_errors_are_those_of_statsmodels():
    summary = Regressor().fit(X, Y).summary(X, Y, clusters=GROUPS)
    assert_same(summary, sm.OLS(Y, WITH_ONE).fit(cov_type="cluster", cov_kwds={"groups": GROUPS}))
    logit = Classifier().fit(X, LABELS).summary(X, LABELS, errors="HC0")
    assert_same(logit, sm.Logit(LABELS, WITH_ONE).fit(disp=0, cov_type="HC0"))


def test_what_rows_do_not_determine_has_no_error():
    doubled = Regressor().fit(X[:, [0, 1, 0]], Y).summary()
    assert np.isnan(doubled.standard_error).tolist() == [True, False, True, False]
    ordinal = Classifier(Ordinal()).fit(X, THREE).summary()  # its intercept is part of the cuts
    assert not np.isnan(ordinal.standard_error).any()
    assert "—" in str(doubled)


def test_as_many_coefficients_as_rows_leave_nothing_to_judge_errors_by():
    assert np.isnan(Regressor().fit(X[:4], Y[:4]).summary().standard_error).all()


def test_a_likelihood_without_curvature_has_none_either():
    model = Regressor(likelihoods.Laplace()).fit(X, Y)
    for rows in ((), (X, Y)):
        with pytest.raises(SpecError, match=r"Laplace\(\): the log-likelihood has no curvature .* coef_"):
            model.summary(*rows)


def test_parameters_are_counted_by_what_columns_tell_apart():
    """Where classes are separated, the information of the coefficients is lost in rounding; they are counted still."""
    parted = (X[:, 0] > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="separated"):
        facts = Classifier().fit(X, parted).summary().facts
    assert facts["aic"] / 2 + facts["log_likelihood"] == pytest.approx(4)
    doubled = Classifier().fit(X[:, [0, 1, 0]], THREE).summary().facts
    assert doubled["aic"] / 2 + doubled["log_likelihood"] == pytest.approx(2 * 3)
