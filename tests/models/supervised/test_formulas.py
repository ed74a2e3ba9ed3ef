"""Formulas at the door of a model: without an intercept, the intercept alone, and rows that were left out."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.base import clone

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.evaluate import likelihood_ratio_test
from likely.inference import MAP
from likely.likelihoods import Ordinal, Poisson
from likely.networks import MLP, Linear

RNG = np.random.default_rng(3)
N = 90
FRAME = pd.DataFrame({"x": RNG.normal(2.0, 1.0, N), "group": RNG.choice(list("ab"), N), "years": RNG.uniform(1, 3, N)})
FRAME["y"] = 1.0 + FRAME.x + RNG.normal(size=N)
FRAME["count"] = RNG.poisson(FRAME.years * np.exp(0.2 * FRAME.x))
FRAME["sick"] = (FRAME.y + RNG.logistic(size=N) > 3).astype(int)


@pytest.mark.parametrize("text", ["y ~ 0 + x", "y ~ x - 1", "y ~ 0 + x + C(group)", "y ~ 1"])
def test_a_formula_without_an_intercept_is_fitted_without_one(text, tmp_path):
    model, expected = Regressor().fit(likely.formula(text, FRAME)), smf.ols(text, FRAME).fit()
    summary = model.summary()
    order = expected.params.index if text == "y ~ 1" else list(summary.terms)
    np.testing.assert_allclose(summary.estimate, expected.params[order], rtol=1e-6)
    np.testing.assert_allclose(summary.standard_error, expected.bse[order], rtol=1e-6)
    assert summary.facts["aic"] == pytest.approx(expected.aic, rel=1e-9)
    np.testing.assert_allclose(model.predict(FRAME), expected.predict(FRAME), rtol=1e-6)
    assert model.get_params()["network"] == Linear()
    assert clone(model).fit(FRAME[["x"]], FRAME.y).intercept_ != 0
    assert model.fit(FRAME[["x"]], FRAME.y).intercept_ != 0  # another fit forgets the formula
    model.fit(likely.formula(text, FRAME)).save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    np.testing.assert_allclose(loaded.predict(FRAME), expected.predict(FRAME), rtol=1e-6)
    np.testing.assert_array_equal(loaded.summary().standard_error, summary.standard_error)


def test_labels_do_without_an_intercept_too():
    model = Classifier().fit(likely.formula("sick ~ 0 + x", FRAME))
    expected = smf.logit("sick ~ 0 + x", FRAME).fit(disp=0, tol=1e-12)
    np.testing.assert_allclose(model.summary().estimate, expected.params, rtol=1e-6)
    np.testing.assert_allclose(model.summary().standard_error, expected.bse, rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(FRAME)[:, 1], expected.predict(FRAME), rtol=1e-6)


def test_a_network_with_biases_keeps_them_and_says_so():
    with pytest.warns(LikelyWarning, match=r"'y ~ 0 \+ x' leaves out the intercept, and network=MLP.* only Linear\(\)"):
        Regressor(network=MLP((2,)), inference=MAP(epochs=1)).fit(likely.formula("y ~ 0 + x", FRAME))


def test_the_null_model_is_what_a_likelihood_ratio_test_is_against():
    null, large = (Regressor(Poisson()).fit(likely.formula(f"count ~ {right}", FRAME)) for right in ("1", "x + group"))
    expected = smf.poisson("count ~ x + group", FRAME).fit(disp=0, tol=1e-12)
    test = likelihood_ratio_test(null, large)
    assert test.statistic == pytest.approx(expected.llr, rel=1e-6)
    assert test.p_value == pytest.approx(expected.llr_pvalue, rel=1e-5)
    assert test.left_out == ("x", "group[T.b]")
    with pytest.raises(SpecError, match="its cut points take that place"):
        Classifier(Ordinal()).fit(likely.formula("sick ~ 1", FRAME))


def test_numbers_of_the_frame_are_cut_to_the_rows_kept():
    gaps = FRAME.assign(x=FRAME.x.where(FRAME.index % 9 != 4))
    whole = gaps.dropna()
    with pytest.warns(LikelyWarning, match="10 of 90 rows have a missing value"):
        design = likely.formula("count ~ x", gaps)
    weight = 1 + FRAME.index.to_numpy() % 3
    beside = {"sample_weight": weight, "exposure": gaps.years}
    model = Regressor(Poisson()).fit(design, **beside)
    expected = Regressor(Poisson()).fit(whole[["x"]], whole["count"], weight[whole.index], exposure=whole.years)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    own = {"sample_weight": weight[design.kept], "exposure": gaps.years.iloc[design.kept]}
    np.testing.assert_allclose(Regressor(Poisson()).fit(design, **own).coef_, expected.coef_, rtol=1e-9)
    told = model.summary(design, errors="HC1", **beside)
    robust = expected.summary(whole[["x"]], whole["count"], weight[whole.index], errors="HC1", exposure=whole.years)
    np.testing.assert_allclose(told.standard_error, robust.standard_error)
    clustered = model.summary(design, clusters=gaps.group, **beside)
    assert clustered.errors == "cluster"


def test_robust_errors_are_asked_with_the_formula():
    design = likely.formula("y ~ x + group", FRAME)
    told = Regressor().fit(design).summary(design, errors="HC1")
    expected = smf.ols("y ~ x + group", FRAME).fit(cov_type="HC1")
    np.testing.assert_allclose(told.standard_error, expected.bse[["x", "group[T.b]", "Intercept"]], rtol=1e-6)


@pytest.mark.parametrize(("model", "text"), [(Regressor(), "y ~ x + group"), (Classifier(), "sick ~ x + group")])
def test_a_formula_scores_its_own_rows(model, text):
    design = likely.formula(text, FRAME)
    weight = np.arange(N)
    model.fit(design)
    assert model.score(design) == model.score(FRAME, design.y)
    assert model.score(design, sample_weight=weight) == model.score(FRAME, design.y, sample_weight=weight)
    np.testing.assert_array_equal(model.log_prob(design), model.log_prob(FRAME, design.y))
    with pytest.raises(DataError, match="y is None"):
        model.score(FRAME)
