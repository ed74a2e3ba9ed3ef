"""The terms of a summary: names, and coefficients in the units of raw columns."""

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from tests.models.supervised.summary_rows import THREE, X, Y

import likely
from likely import Classifier, Regressor, TableModel
from likely.inference import Exact
from likely.likelihoods import Ordinal
from likely.networks import Linear


def test_several_outputs_are_several_regressions():
    both = Regressor().fit(X, np.column_stack([Y, -2 * Y])).summary()
    single = Regressor().fit(X, Y).summary()
    assert both.terms[0] == "y0: x0"
    assert both.terms[-1] == "y1: intercept"
    np.testing.assert_allclose(both.standard_error, np.concatenate([single.standard_error, 2 * single.standard_error]))


def test_a_table_tells_its_columns_in_their_own_units():
    frame = pd.DataFrame({"age": 50 + 10 * X[:, 0], "city": np.array(["Bern", "Oslo", "Rome"])[THREE], "y": Y})
    reference = frame.city.mode()[0]
    model = TableModel(Regressor(), "y").fit(frame)
    summary = model.summary()
    expected = smf.ols(f"y ~ age + C(city, Treatment('{reference}'))", frame).fit()
    others = [f"C(city, Treatment('{reference}'))[T.{c}]" for c in ("Bern", "Oslo", "Rome") if c != reference]
    names = ["age", *others]
    np.testing.assert_allclose(summary.standard_error, expected.bse[[*names, "Intercept"]], rtol=1e-6)
    np.testing.assert_allclose(summary.estimate, expected.params[[*names, "Intercept"]], rtol=1e-6)
    assert summary.terms[0] == "age"
    np.testing.assert_allclose(model.summary(frame).standard_error, summary.standard_error, rtol=1e-6)
    robust = model.summary(frame, clusters="city")
    assert robust.errors == "cluster"


def test_the_terms_of_a_table_add_up_to_its_predictions(tmp_path):
    frame = pd.DataFrame({"age": 50 + 10 * X[:, 0], "year": 2000.0 + X[:, 1], "level": THREE, "y": Y})
    full = TableModel(Regressor(inference=Exact("full")), "y").fit(frame[["age", "year", "y"]])
    plain = TableModel(Regressor(), "y").fit(frame[["age", "year", "y"]])
    for model in (full, plain):
        age, year, intercept = model.summary().estimate
        np.testing.assert_allclose(intercept + age * frame.age + year * frame.year, model.predict(frame), atol=1e-5)
    np.testing.assert_allclose(full.summary().lower, plain.summary().lower, rtol=1e-6)
    plain.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_allclose(again.summary().standard_error, plain.summary().standard_error, rtol=1e-9)
    flat = TableModel(Regressor(network=Linear(bias=False)), "y").fit(frame[["age", "year", "y"]])
    age, year, intercept = flat.summary().estimate
    np.testing.assert_allclose(intercept + age * frame.age + year * frame.year, flat.predict(frame), atol=1e-5)


def test_cut_points_of_a_table_are_those_of_its_raw_columns():
    frame = pd.DataFrame({"age": 50 + 10 * X[:, 0], "level": THREE})
    told = TableModel(Classifier(Ordinal()), "level").fit(frame).summary()
    raw = Classifier(Ordinal()).fit(frame[["age"]], frame.level).summary()
    assert told.terms == raw.terms
    np.testing.assert_allclose(told.estimate, raw.estimate, rtol=1e-5)
    np.testing.assert_allclose(told.standard_error, raw.standard_error, rtol=1e-5)
