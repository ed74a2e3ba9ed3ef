"""A model of tables is the encoder and the model, and answers as they would by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import cross_val_score

from likely import Classifier, FrameModel, KernelRidge, Regressor, TableModel, load
from likely.core.errors import DataError, ModelFileError, SpecError
from likely.core.files import read_file, write_file
from likely.data import Table
from likely.evaluate import compare
from likely.likelihoods import Poisson
from likely.models import GAN, PCA, Autoencoder, Perceptron


@pytest.fixture(scope="module")
def houses() -> pl.DataFrame:
    """The first eight are pairs that differ in their price alone: no direction parts dear ones from others."""
    rng = np.random.default_rng(0)
    n = 80
    area, city = rng.normal(80, 20, n), rng.choice(["Oslo", "Bergen", "Voss"], n)
    area[:8], city[:8] = np.repeat([60.0, 64.0, 90.0, 90.0], 2), np.repeat(["Oslo", "Oslo", "Bergen", "Voss"], 2)
    price = 0.1 * area + np.where(city == "Oslo", 3.0, 0.0) + rng.normal(0, 0.5, n)
    price[:8] = np.tile([8.8, 9.4], 4)
    return pl.DataFrame({"area": area, "city": city, "price": price, "dear": price > 9, "rooms": rng.poisson(3, n)})


@pytest.fixture(scope="module")
def prices(houses) -> TableModel:
    return TableModel(Regressor(), "price", Table(ignore=["dear", "rooms"])).fit(houses)


@pytest.fixture(scope="module")
def labels(houses) -> TableModel:
    return TableModel(Classifier(), "dear", Table(ignore=["price", "rooms"])).fit(houses)


def test_it_equals_the_parts_by_hand(houses, prices):
    X, y = Table().fit_transform(houses.select("area", "city")), houses["price"].to_list()
    model = Regressor().fit(X, y)
    np.testing.assert_allclose(prices.predict(houses), model.predict(X), rtol=1e-6)
    np.testing.assert_allclose(prices.predict_dist(houses).mean, model.predict_dist(X).mean, rtol=1e-6)
    np.testing.assert_allclose(prices.predict_interval(houses, 0.5), model.predict_interval(X, 0.5), rtol=1e-6)
    np.testing.assert_allclose(prices.log_prob(houses), model.log_prob(X, y), rtol=1e-6)
    assert prices.score(houses) == pytest.approx(model.score(X, y), rel=1e-6)


def test_standardising_does_not_change_least_squares(houses, prices):
    raw = TableModel(Regressor(), "price", Table(standardize=False, ignore=["dear", "rooms"])).fit(houses)
    np.testing.assert_allclose(raw.predict(houses), prices.predict(houses), rtol=1e-4)


def test_labels_of_every_kind(houses, labels):
    assert list(labels.classes_) == [False, True]
    assert labels.predict(houses).dtype == bool
    text = houses.with_columns(dear=pl.when("dear").then(pl.lit("yes")).otherwise(pl.lit("no")))
    codes = houses.with_columns(pl.col("dear").cast(pl.Int64))
    for frame, classes in ((text, ["no", "yes"]), (codes, [0, 1])):
        model = clone(labels).fit(frame)
        assert list(model.classes_) == classes
        np.testing.assert_allclose(model.predict_proba(frame), labels.predict_proba(houses), rtol=1e-5)
        np.testing.assert_allclose(model.predict_proba(frame).sum(1), 1, rtol=1e-6)


def test_rows_to_predict_need_no_target(houses, prices):
    np.testing.assert_array_equal(prices.predict(houses.select("city", "area")), prices.predict(houses))


def test_rows_without_a_target_do_not_count(houses, prices):
    gaps = pl.concat([houses, houses[:7].with_columns(price=pl.lit(None, pl.Float64), city=pl.lit("Rome"))])
    model = clone(prices).fit(gaps)
    np.testing.assert_allclose(model.predict(houses), prices.predict(houses), rtol=1e-6)
    known = gaps.with_columns(city=pl.when(pl.col("city") == "Rome").then(pl.lit("Oslo")).otherwise("city"))
    np.testing.assert_array_equal(model.log_prob(known)[-7:], 0)
    assert model.score(known) == pytest.approx(prices.score(houses), rel=1e-6)
    assert np.isnan(model.targets(known)[-7:]).all()


def test_weights_count_as_repetitions(houses, prices):
    weight = np.arange(len(houses)) % 3
    repeated = houses[np.repeat(np.arange(len(houses)), weight)]
    fixed = Table(standardize=False, ignore=["dear", "rooms"])
    model = TableModel(Regressor(), "price", fixed)
    expected = clone(model).fit(repeated).predict(houses)
    np.testing.assert_allclose(clone(model).fit(houses, sample_weight=weight).predict(houses), expected, rtol=1e-4)
    named = clone(model).fit(houses.with_columns(times=weight), sample_weight="times")
    np.testing.assert_allclose(named.predict(houses), expected, rtol=1e-4)
    assert "times" not in named.table_.feature_names_


@pytest.mark.parametrize("name", ["prices", "labels"])
def test_saved_and_loaded_it_answers_the_same(name, request, houses, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model.likely")
    loaded = load(tmp_path / "model.likely")
    assert isinstance(loaded, TableModel)
    np.testing.assert_array_equal(loaded.predict(houses), model.predict(houses))
    np.testing.assert_array_equal(loaded.log_prob(houses), model.log_prob(houses))
    assert loaded.table_.describe() == model.table_.describe()


def test_scikit_learn_and_comparison_see_rows_of_a_frame(houses, prices, labels):
    assert is_regressor(prices)
    assert is_classifier(labels)
    for frame in (houses, pd.DataFrame(houses.to_dict(as_series=False))):
        scores = cross_val_score(prices, frame, frame["price"], cv=4)
        assert scores.mean() > 0.8
    weak = TableModel(Regressor(), "price", Table(ignore=["dear", "rooms", "city"]))
    board = compare({"all": prices, "area": weak}, houses, houses["price"].to_numpy(), cv=4, random_state=0)
    assert board.best == "all"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"target": "prize"}, DataError, r"no column 'prize'. Did you mean 'price'\?"),
        ({"target": 3}, SpecError, "target must be the name of a column"),
        ({"target": "city"}, DataError, "Target column 'city' holds text .* a regression needs numbers"),
        ({"model": Regressor, "target": "price"}, SpecError, "model must be a model such as"),
        ({"table": "x", "target": "price"}, SpecError, r"table must be a Table\(\)"),
        ({"model": Classifier(), "target": "price"}, DataError, "Target column 'price' has the number .* regressor"),
    ],
)
def test_arguments_are_checked(houses, arguments, error, message):
    with pytest.raises(error, match=message):
        TableModel(**({"model": Regressor()} | arguments)).fit(houses)


def test_errors_name_the_target_and_the_row_of_the_table():
    frame = {"x": [1.0, 2.0, 3.0, 4.0, 5.0], "n": [None, 1.0, None, 2.0, -3.0]}
    with pytest.raises(DataError, match=r"Target column 'n' .*-3.0 at row 4.*Poisson needs counts"):
        TableModel(Regressor(likelihood=Poisson()), "n").fit(frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"y": [1.0, 2.0]}, "no column besides the target 'y'"),
        ({"x": [1.0, 2.0], "y": [None, None]}, "Target column 'y' has a value in 0 of 2 rows"),
        ({"x": [1.0], "y": [1.0]}, "Target column 'y' has a value in 1 of 1 rows; at least 2"),
        ({"x": [1.0, 2.0], "y": [1.0, float("inf")]}, "Column 'y' has an infinite value"),
    ],
)
def test_what_cannot_be_fitted(frame, message):
    with pytest.raises(DataError, match=message):
        TableModel(Regressor(), "y").fit(frame)


def test_weights_are_checked(houses, prices):
    with pytest.raises(DataError, match=r"Weight column 'w' has a negative value \(row 2"):
        clone(prices).fit(houses.with_columns(w=pl.Series([1.0, 1, -1] + [1] * 77)), sample_weight="w")
    with pytest.raises(DataError, match="Weight column 'city' must hold numbers"):
        clone(prices).fit(houses, sample_weight="city")
    with pytest.raises(DataError, match=r"sample_weight has shape \(3,\)"):
        clone(prices).fit(houses, sample_weight=[1, 2, 3])


def test_a_regressor_has_no_probabilities_of_classes(houses, prices):
    with pytest.raises(SpecError, match="no predict_proba"):
        prices.predict_proba(houses)


def test_a_damaged_file_is_refused(prices, tmp_path):
    path = tmp_path / "model.likely"
    prices.save(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelFileError):
        load(path)


@pytest.fixture(scope="module")
def claims() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    age, years = rng.normal(40, 9, 60), rng.uniform(0.5, 5, 60)
    counts = [None, *rng.poisson(years * np.exp(0.02 * age - 1))[1:].tolist()]
    return pl.DataFrame({"age": age, "years": years, "level": np.log(years), "claims": counts})


@pytest.mark.parametrize("named", [{"exposure": "years"}, {"offset": "level"}])
def test_an_exposure_or_offset_is_a_column_that_joins_every_question(claims, named, tmp_path):
    (role, column), table = next(iter(named.items())), Table(ignore=["level" if "exposure" in named else "years"])
    model = TableModel(Regressor(Poisson()), "claims", table, **named).fit(claims)
    assert model.table_.feature_names_ == ["age"]
    known = claims.drop_nulls()
    X, y, own = model.table_.transform(known), known["claims"].to_numpy(), {role: known[column].to_numpy()}
    inner = Regressor(Poisson()).fit(X, y, **own)
    model.save(tmp_path / "m.likely")
    loaded = load(tmp_path / "m.likely")
    np.testing.assert_allclose(loaded.predict(known), inner.predict(X, **own), rtol=1e-6)
    np.testing.assert_allclose(loaded.log_prob(claims)[1:], inner.log_prob(X, y, **own), rtol=1e-6)
    assert loaded.score(claims) == pytest.approx(inner.score(X, y, **own), rel=1e-6)
    by_hand = inner.summary(X, y, **own, errors="quasi")
    assert loaded.summary(claims, errors="quasi").statistic[0] == pytest.approx(by_hand.statistic[0], rel=1e-5)
    assert loaded.predict_interval(known)[1].shape == (59,)
    with pytest.raises(DataError, match=f"The table has no column '{column}'"):
        loaded.predict(claims.drop(column))


def test_an_exposure_that_cannot_be_is_refused_by_name(claims):
    model = TableModel(Regressor(Poisson()), "claims", exposure="years")
    with pytest.raises(DataError, match=r"Column 'years', the exposure, has 0 at row 2 \(counted from 0\); it takes"):
        model.fit(claims.with_columns(years=pl.Series([1.0, 1.0, 0.0, *[1.0] * 57])))
    with pytest.raises(DataError, match="Column 'years', the exposure, has no value at row 1"):
        model.fit(claims.with_columns(years=pl.Series([1.0, None, *[1.0] * 58])))
    with pytest.raises(SpecError, match=r"TableModel\(exposure=3\): exposure must be the name of a column"):
        TableModel(Regressor(), "claims", exposure=3).fit(claims)
    with pytest.raises(SpecError, match=r"exposure='claims'\): that is the target"):
        TableModel(Regressor(), "claims", exposure="claims").fit(claims)
    with pytest.raises(SpecError, match=r"KernelRidge takes none; Regressor and Classifier do"):
        TableModel(KernelRidge(), "claims", exposure="years").fit(claims)


def test_it_has_a_log_prob_where_its_model_has_one():
    for model, has in [(Regressor(), True), (KernelRidge(), False), (Perceptron(), False)]:
        table = TableModel(model, target="y")
        assert hasattr(table, "log_prob") == hasattr(table, "log_prob_kind_") == has
    for inner, has in [(GAN(), False), (Autoencoder(), False), (PCA(), True)]:
        assert hasattr(FrameModel(inner), "log_prob") == hasattr(FrameModel(inner), "log_prob_kind_") == has


@pytest.mark.parametrize(
    ("part", "change"), [("params", {"target": ["y"]}), ("params", {"exposure": "y"}), ("learned", {"name": 3})]
)
def test_a_file_whose_names_are_no_words_is_refused(part, change, tmp_path):
    path = tmp_path / "model.likely"
    TableModel(Regressor(), target="y").fit({"a": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]}).save(path)
    header, tensors = read_file(path)
    (header["params"] if part == "params" else header["learned"]["table"]["columns"][0]).update(change)
    write_file(path, header, tensors)
    with pytest.raises(ModelFileError, match=r"model that can be rebuilt: .* (must be|is the target)"):
        load(path)
