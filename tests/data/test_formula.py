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


def as_polars(frame):
    """The same frame, without the help of pyarrow."""
    return polars.DataFrame({name: frame[name].to_list() for name in frame.columns})


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


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.astype({"group": object}).set_index(frame.age),
        lambda frame: as_polars(frame).with_columns(polars.col("age").cast(polars.Decimal(38, 15))),
    ],
    ids=["nullable", "index", "decimal"],
)
def test_a_frame_may_have_any_types_of_numbers_and_text(convert):
    expected = likely.formula(FORMULA, FRAME)
    design = likely.formula(FORMULA, convert(FRAME))
    assert design.terms == expected.terms
    np.testing.assert_allclose(design.X, expected.X, atol=1e-12)
    np.testing.assert_allclose(np.asarray(design.y, dtype=float), expected.y)
    np.testing.assert_allclose(expected(convert(FRAME)[:5]), expected.X[:5], atol=1e-12)


def test_missing_values_of_nullable_types_are_left_out():
    frame = FRAME.convert_dtypes()
    frame.loc[3, "x1"] = pd.NA
    with pytest.warns(LikelyWarning, match=r"1 of 120 rows have a missing value .*row 3"):
        design = likely.formula("y ~ x1", frame)
    assert len(design.kept) == N - 1
    with pytest.raises(DataError, match="'x1' has no value at row 3: fill it, or leave the row out"):
        design(frame)
    with pytest.raises(DataError, match="'group' has no value at row 3"):
        likely.formula("y ~ group", FRAME)(FRAME.assign(group=FRAME.group.where(FRAME.index != 3)))


@pytest.mark.parametrize(
    "days",
    [
        pd.date_range("2020-01-01", periods=N),
        pd.date_range("2020-01-01", periods=N, tz="UTC"),
        pd.Series(pd.date_range("2020-01-01", periods=N).date),
    ],
)
def test_dates_are_refused_where_they_are_a_term_and_no_matter_where_not(days):
    frame = as_polars(FRAME.assign(day=np.asarray(days) if days.dtype == object else days))
    assert likely.formula("y ~ x1", frame).terms == ("x1",)
    with pytest.raises(DataError, match="takes numbers and categories, and 'day' holds dates: make days of them first"):
        likely.formula("y ~ x1 + day", frame)


def test_durations_are_days():
    expected = likely.formula("y ~ years", FRAME)
    frame = FRAME.assign(years=pd.to_timedelta(FRAME.years, unit="D"))
    np.testing.assert_allclose(likely.formula("y ~ years", frame).X, expected.X, atol=1e-9)


def test_more_that_a_formula_cannot_read():
    with pytest.raises(SpecError, match="formula=' ' must be text"):
        likely.formula(" ", FRAME)
    with pytest.raises(DataError, match="more than one column named 'x1'"):
        likely.formula("y ~ x1", pd.concat([FRAME, FRAME[["x1"]]], axis=1))
    with pytest.raises(DataError, match="An offset is given to fit and predict: offset= or exposure="):
        likely.formula("y ~ x1 + offset(np.log(years))", FRAME)
