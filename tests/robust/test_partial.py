"""Rows of which only some numbers may be changed: tables, and columns of labels, counts and positive numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likely import Classifier, KernelRidge, NaiveBayes, Regressor, TableModel
from likely.core.errors import DataError, SpecError
from likely.data import Table, TextColumn
from likely.evaluate import robustness
from likely.inference import MAP
from likely.likelihoods import Bernoulli, Beta, Categorical, Exponential, Gamma, LogNormal, Normal, Poisson
from likely.networks import MLP
from likely.optim import Adam
from likely.robust import FGSM, PGD, DeepFool, Linear, attack
from likely.robust.victims import victim_of


# --- tables -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def flats():
    """Flats whose price hangs on their area, age and city, and whether they are dear for their city."""
    rng = np.random.default_rng(0)
    area, age = rng.uniform(30, 120, 60).round(), rng.uniform(0, 50, 60)
    city, lift = np.array(["Oslo", "Voss", "Bergen"])[rng.integers(0, 3, 60)], rng.integers(0, 2, 60).astype(bool)
    price = 0.1 * area - 0.05 * age + 2.0 * (city == "Oslo") + lift + 0.3 * rng.normal(size=60)
    dear = np.where(price > np.median(price), "dear", "cheap")
    day = pd.date_range("2020-01-01", periods=60, freq="D")
    columns = {"area": area.astype(int), "city": city, "age": age, "lift": lift, "sold": day}
    return pd.DataFrame(columns | {"price": price, "dear": dear}, index=np.arange(60) * 3 + 7)


@pytest.fixture(scope="module")
def dear(flats):
    return TableModel(Classifier(prior="normal(1.0)"), target="dear", table=Table(ignore=["price"])).fit(flats)


@pytest.fixture(scope="module")
def price(flats):
    network = Regressor(network=MLP((16,)), inference=MAP(Adam(0.03), epochs=60), random_state=0)
    return TableModel(network, target="price", table=Table(ignore=["dear"])).fit(flats)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_columns_of_numbers_are_changed_in_their_units_and_all_others_stay(dear, flats, norm):
    bounds = ({"area": 25.0, "age": 0.0}, {"area": 130.0})
    for method in (FGSM(6.0, norm), PGD(6.0, norm, steps=5, restarts=2), DeepFool(norm)):
        found = attack(dear, flats, flats["dear"], method, bounds=bounds, random_state=0)
        changed = found.perturbed
        assert isinstance(changed, pd.DataFrame)
        assert list(changed.columns) == list(flats.columns)
        held = ["city", "lift", "sold", "price", "dear"]
        pd.testing.assert_frame_equal(changed[held], flats[held])
        moves = changed[["area", "age"]].to_numpy() - flats[["area", "age"]].to_numpy(float)
        np.testing.assert_allclose(np.linalg.norm(moves, norm, axis=1), found.size(norm), rtol=1e-12, atol=1e-12)
        if not isinstance(method, DeepFool):
            assert (found.size(norm) <= 6.0 * (1 + 1e-9)).all()
        assert changed["area"].between(25.0, 130.0).all()
        assert (changed["age"] >= 0.0).all()
        np.testing.assert_array_equal(found.success, dear.predict(changed) != flats["dear"])
        assert found.success.any()


def test_the_victim_answers_what_the_model_says(dear, price, flats):
    for model, threshold in ((dear, None), (price, 0.5)):
        victim = victim_of(model, threshold)
        x = victim.read(flats)
        rng = np.random.default_rng(1)
        moved = x + torch.from_numpy(rng.normal(size=x.shape)) * torch.tensor([10.0, 5.0])
        targets = victim.targets(x, flats, None)
        margin = victim.evaluate(moved, targets)[1]
        rows = victim.changed(flats, x, moved, None)
        if threshold is None:
            log_proba = np.log(model.predict_proba(rows))
            own = np.searchsorted(model.classes_, model.predict(flats))[:, None]
            expected = (np.take_along_axis(log_proba, 1 - own, 1) - np.take_along_axis(log_proba, own, 1))[:, 0]
        else:
            expected = np.abs(model.predict(rows) - model.predict(flats)) - threshold
        np.testing.assert_allclose(margin.detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "method", [PGD(12.0, steps=5, restarts=2), PGD(25.0, 1, steps=5), DeepFool(), FGSM(12.0)], ids=repr
)
def test_networks_of_tables_with_fewer_digits_than_columns_are_attacked(price, flats, method):
    found = attack(price, flats, flats["price"], method, threshold=0.8, random_state=0)
    off = np.abs(price.predict(found.perturbed) - flats["price"])
    np.testing.assert_array_equal(found.success, off > 0.8)
    assert found.success.sum() > (np.abs(price.predict(flats) - flats["price"]) > 0.8).sum()


def test_default_networks_of_tables_are_attacked(flats):
    model = TableModel(Classifier(network=MLP((4,)), random_state=0), target="dear", table=Table(ignore=["price"]))
    model.fit(flats)
    gentle, strong = (attack(model, flats, None, method, random_state=0) for method in (FGSM(8.0), PGD(8.0, steps=5)))
    np.testing.assert_array_equal(strong.success, model.predict(strong.perturbed) != model.predict(flats))
    assert strong.rate >= gentle.rate > 0


def test_a_linear_table_has_the_closed_form_in_units_of_columns(flats):
    model = TableModel(Regressor(), target="price", table=Table(ignore=["dear", "sold"])).fit(flats)
    bumped = flats.assign(area=flats["area"] + 1), flats.assign(age=flats["age"] + 1)
    coefficients = np.array([(model.predict(frame) - model.predict(flats)).mean() for frame in bumped])
    for norm, q in ((1, math.inf), (2, 2), (math.inf, 1)):
        found = attack(model, flats, None, Linear(norm=norm, overshoot=1e-4), threshold=0.5)
        assert found.success.all()
        np.testing.assert_allclose(found.size(norm), 0.5 / np.linalg.norm(coefficients, q), rtol=1e-3)


def test_tables_come_back_in_their_form(dear, flats):
    expected = attack(dear, flats, None, FGSM(5.0)).perturbed
    for form in (pl.DataFrame, lambda columns: columns):
        rows = form({name: flats[name].to_numpy() for name in flats.columns})
        changed = attack(dear, rows, None, FGSM(5.0)).perturbed
        assert type(changed) is type(rows)
        for name in ("area", "age"):
            np.testing.assert_allclose(changed[name], expected[name])
        assert list(changed["city"]) == list(flats["city"])
    shuffled = attack(dear, flats[[*flats.columns[::-1]]], None, FGSM(5.0)).perturbed
    pd.testing.assert_frame_equal(shuffled[[*flats.columns]], expected)


def test_counts_in_a_table_of_naive_bayes_are_held(flats):
    rng = np.random.default_rng(0)
    rooms = 1 + rng.poisson(2.0 * (flats["dear"] == "dear") + 0.5)
    rows = flats[["area", "dear"]].assign(rooms=rooms)
    model = TableModel(NaiveBayes([Gamma(), Poisson()]), target="dear", table=Table(standardize=False)).fit(rows)
    found = attack(model, rows, rows["dear"], PGD(60.0, steps=5))
    np.testing.assert_array_equal(found.perturbed["rooms"], rooms)
    assert (found.perturbed["area"] > 0).all()
    np.testing.assert_array_equal(found.success, model.predict(found.perturbed) != rows["dear"])
    assert found.rate > np.mean(model.predict(rows) != rows["dear"])


def test_an_exposure_is_asked_for_as_a_column(flats):
    rng = np.random.default_rng(0)
    counts = flats.assign(claims=rng.poisson(2.0, 60), years=rng.uniform(1, 2, 60))[["area", "years", "claims"]]
    model = TableModel(Regressor(likelihood="poisson"), target="claims", exposure="years").fit(counts)
    with pytest.raises(DataError, match=r"fitted with an offset or an exposure.*make it a column of X"):
        attack(model, counts, None, FGSM(1.0), threshold=1.0)


def test_robustness_of_a_table(dear, flats):
    columns = {name: flats[name].to_numpy() for name in flats.columns}
    for rows in (flats, pl.DataFrame({name: flats[name].to_list() for name in flats.columns}), columns):
        curve = robustness(dear, rows, flats["dear"], PGD(1.0, steps=3), radii=[2.0, 20.0], random_state=0)
        assert curve.count == 60
        assert curve.clean == pytest.approx(np.mean(dear.predict(flats) == flats["dear"]))
        assert curve.clean >= curve.accuracy[0] > curve.accuracy[1]


def test_kernel_machines_of_tables_are_attacked_too(flats):
    model = TableModel(KernelRidge(), target="price", table=Table(ignore=["dear"])).fit(flats)
    found = attack(model, flats, flats["price"], PGD(5.0, steps=5), threshold=1.0)
    np.testing.assert_array_equal(found.success, np.abs(model.predict(found.perturbed) - flats["price"]) > 1.0)
    assert found.rate > np.mean(np.abs(model.predict(flats) - flats["price"]) > 1.0)


def test_tables_that_have_no_small_changes_are_refused_in_words(dear, flats):
    words = flats[["city", "lift", "dear"]]
    model = TableModel(NaiveBayes([Bernoulli(), Bernoulli(), Bernoulli()]), target="dear").fit(words)
    with pytest.raises(DataError, match=r"No column of the table \('city', 'lift'\) holds numbers with small changes"):
        attack(model, words, None, FGSM(1.0))
    gaps = flats.assign(age=flats["age"].where(flats["age"] > 10))
    model = TableModel(Classifier(prior="normal(1.0)"), target="dear", table=Table(ignore=["price"])).fit(gaps)
    row = int((~(flats["age"] > 10)).to_numpy().argmax())
    with pytest.raises(DataError, match=f"Column 'age' has a missing value at row {row}, which has no small changes"):
        attack(model, gaps, None, FGSM(1.0))
    with pytest.raises(DataError, match="bounds has an end for 'city'; the columns that may be changed are area, age"):
        attack(dear, flats, None, FGSM(1.0), bounds=({"city": 0.0}, None))
    with pytest.raises(SpecError, match=r"threshold=1\.0 is for regressors"):
        attack(dear, flats, None, FGSM(1.0), threshold=1.0)
    texts = {"text": ["good day", "bad day", "good night", "bad night"], "mood": ["a", "b", "a", "b"]}
    model = TableModel(Classifier(), target="mood", table=TextColumn("text")).fit(texts)
    with pytest.raises(DataError, match="The TableModel reads texts, which have no small changes"):
        attack(model, texts, None, FGSM(1.0))


# --- columns of arrays ------------------------------------------------------------------------------------------------
def test_labels_and_counts_are_held_and_numbers_stay_in_their_support(clouds):
    X, y = clouds
    rng = np.random.default_rng(0)
    counts, share = rng.poisson(np.exp(X[:, 2])), 1 / (1 + np.exp(-X[:, 0] / 3))
    rows = np.column_stack([X[:, 1] > 0, np.exp(X[:, 0] / 4), counts, share, X[:, 3], counts % 3])
    columns = [Bernoulli(), Gamma(), Poisson(), Beta(), Normal(), Categorical(3)]
    model = NaiveBayes(columns).fit(rows, y)
    for method in (FGSM(0.5), PGD(2.0, norm=2, steps=5, restarts=2), PGD(3.0, norm=1, steps=5)):
        found = attack(model, rows, y, method, random_state=0)
        np.testing.assert_array_equal(found.perturbed[:, [0, 2, 5]], rows[:, [0, 2, 5]])
        assert (found.perturbed[:, 1] > 0).all()
        assert ((found.perturbed[:, 3] > 0) & (found.perturbed[:, 3] < 1)).all()
        np.testing.assert_array_equal(found.success, model.predict(found.perturbed) != y)
        assert found.rate > np.mean(model.predict(rows) != y)
    low, high = rows.min(0), rows.max(0)
    inside = attack(model, rows, y, PGD(0.5, steps=5), bounds=(low, high)).perturbed
    assert ((inside >= low) & (inside <= high)).all()


@pytest.mark.parametrize("likelihood", [Gamma(), LogNormal(), Exponential()], ids=str)
def test_positive_columns_in_float32_stay_positive(likelihood, clouds):
    rows = np.exp(clouds[0] / 4).astype(np.float32)
    model = NaiveBayes(likelihood).fit(rows, clouds[1])
    found = attack(model, rows, clouds[1], PGD(2.0, steps=5))
    assert found.perturbed.dtype == np.float32
    assert found.rate > 0.5
    assert (found.perturbed > 0).all() or isinstance(likelihood, Exponential)


def test_columns_without_small_changes_are_refused_in_words(clouds):
    X, y = clouds
    model = NaiveBayes(Bernoulli()).fit((X > 0).astype(float), y)
    with pytest.raises(DataError, match="Every column of the NaiveBayes is of labels or counts, which have no small"):
        attack(model, (X > 0).astype(float), y, FGSM(0.1))
