"""Formulas: equal to statsmodels, the same encoding for new frames, and what they cannot read."""

import builtins
import re

import numpy as np
import polars
import pytest

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.likelihoods import Ordinal, Poisson
from likely.networks import Linear

pytest.importorskip("formulaic")
pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "x1": RNG.normal(size=N),
        "group": RNG.choice(list("abc"), size=N),
        "age": RNG.uniform(20, 60, size=N),
        "years": RNG.uniform(1, 3, size=N),
    }
)
FRAME["y"] = FRAME.x1 + (FRAME.group == "b") + np.sin(FRAME.age / 10) + 0.3 * RNG.normal(size=N)
FRAME["sick"] = np.where(FRAME.y + RNG.logistic(size=N) > 0.5, "yes", "no")
FRAME["level"] = pd.Categorical.from_codes(
    np.digitize(FRAME.y, [0.0, 1.0]), categories=["low", "mid", "high"], ordered=True
)
FORMULA = "y ~ x1 + C(group) + bs(age, df=4)"


def by_name(theirs, terms):
    """The coefficients of statsmodels, which counts the columns of a spline from 0."""
    names = [re.sub(r"\)\[(\d)\]", lambda match: f")[{int(match[1]) - 1}]", term) for term in terms]
    return [theirs.params["Intercept" if name == "intercept" else name] for name in names]


def test_least_squares_and_logit_are_those_of_statsmodels():
    smf = pytest.importorskip("statsmodels.formula.api")
    design = likely.formula(FORMULA, FRAME)
    ours = Regressor().fit(design)
    np.testing.assert_array_equal(ours.coef_, Regressor().fit(*design).coef_)
    theirs = smf.ols(FORMULA, FRAME).fit()
    table = ours.summary()
    assert table.terms == (*design.terms, "intercept")
    assert table.terms[:3] == ("x1", "C(group)[T.b]", "C(group)[T.c]")
    np.testing.assert_allclose(table.estimate, by_name(theirs, table.terms), atol=1e-8)
    new = FRAME.iloc[:5].assign(age=30.0)
    np.testing.assert_allclose(ours.predict(design(new)), theirs.predict(new), atol=1e-8)
    labels = likely.formula("sick ~ x1 * C(group)", FRAME)
    model = Classifier().fit(*labels)
    assert model.classes_.tolist() == ["no", "yes"]
    theirs = smf.logit("z ~ x1 * C(group)", FRAME.assign(z=(FRAME.sick == "yes").astype(float))).fit(disp=0, tol=1e-10)
    table = model.summary()
    np.testing.assert_allclose(table.estimate, by_name(theirs, table.terms), atol=1e-6)


def test_means_knots_and_levels_stay_those_of_the_first_frame():
    design = likely.formula("np.exp(y) ~ center(x1) + C(group) + bs(age, df=4)", FRAME)
    assert np.allclose(design.y, np.exp(FRAME.y))
    alone, among = design(FRAME.iloc[[7]]), design(FRAME).iloc[[7]]
    np.testing.assert_allclose(alone.to_numpy(), among.to_numpy())
    assert "120 rows, center(x1)" in repr(design)


def test_polars_ordered_labels_and_offsets_go_through():
    frame = polars.DataFrame({name: FRAME[name].to_list() for name in ("x1", "group", "years")})
    frame = frame.with_columns(polars.Series("level", FRAME.level.tolist(), dtype=polars.Enum(["low", "mid", "high"])))
    assert Classifier(Ordinal()).fit(*likely.formula("level ~ x1 + group", frame)).classes_.tolist()[0] == "low"
    gaps = FRAME.assign(count=RNG.poisson(FRAME.years), x1=FRAME.x1.where(FRAME.index != 3))
    with pytest.warns(LikelyWarning, match=r"1 of 120 rows have a missing value in .* \(the first is row 3\)"):
        design = likely.formula("count ~ x1", gaps)
    assert len(Regressor(Poisson()).fit(*design, exposure=gaps.years.iloc[design.kept]).coef_) == 1
    with pytest.raises(DataError, match="'x1' has no value at row 3: fill it"):
        design(gaps)


def test_a_formula_without_an_intercept_has_one_column_for_each_level():
    design = likely.formula("y ~ C(group) - 1", FRAME)
    assert not design.intercept
    model = Regressor(network=Linear(bias=False)).fit(*design)
    np.testing.assert_allclose(model.coef_, FRAME.groupby("group").y.mean(), atol=1e-9)


def test_a_dot_is_all_other_columns():
    frame = FRAME[["y", "x1", "group", "age"]].rename(columns={"age": "the age"})
    written = likely.formula("np.exp(y) ~ x1 + group + `the age`", frame)
    np.testing.assert_array_equal(likely.formula("np.exp(y) ~ .", frame).X, written.X)
    assert likely.formula("y ~ . - group", frame).terms == ("x1", "the age")
    assert likely.formula("y ~ x1 + I(.5 * x1)", frame).terms == ("x1", "I(0.5 * x1)")  # the dot of a number


def test_the_intercept_alone_is_a_column_of_ones():
    design = likely.formula("y ~ 1", FRAME)
    assert design.terms == ("intercept",)
    assert design(FRAME.iloc[:3])["intercept"].tolist() == [1.0, 1.0, 1.0]


def test_what_a_formula_cannot_read_is_said_in_words_of_the_frame(monkeypatch):
    with pytest.raises(DataError, match=r"`nope` is not present .* Columns are 'x1', 'group'"):
        likely.formula("y ~ nope", FRAME)
    with pytest.raises(DataError, match=r"insuffi.* arguments"):
        likely.formula("y ~ x1 +", FRAME)
    with pytest.raises(DataError, match="must be one target"):
        likely.formula("y + x1 ~ age", FRAME)
    with pytest.raises(DataError, match="no column and no intercept"):
        likely.formula("y ~ 0", FRAME)
    with pytest.raises(DataError, match="the dot is all columns besides the target"):
        likely.formula("y ~ .", FRAME[["y"]])
    with pytest.raises(DataError, match="category that was not seen before: 'z'"):
        likely.formula("y ~ C(group)", FRAME)({"group": ["z"]})
    with pytest.raises(DataError, match="has no target; write it before a tilde"):
        Regressor().fit(likely.formula("~ x1", FRAME))
    with pytest.raises(SpecError, match="must be text"):
        likely.formula(3, FRAME)
    found = builtins.__import__

    def without(name, *rest, **more):
        if name == "formulaic":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SpecError, match=r"pip install 'likely\[formula\]'"):
        likely.formula("y ~ x1", FRAME)
