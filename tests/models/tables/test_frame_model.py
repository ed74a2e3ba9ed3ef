"""FrameModel: a table goes in by names, and what comes out is what the model says of the same numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import PCA, FrameModel, GaussianMixture, HiddenMarkov, KMeans, Mixture, load
from likely.core.errors import DataError, SpecError
from likely.likelihoods import Categorical, Normal, Poisson


def rows(n=60):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    return {
        "size": (rng.normal(size=n) + 6 * group).round(3),
        "visits": rng.poisson(3 + 20 * group),
        "colour": [["red", "blue"][g] for g in group],
        "member": group == 1,
    }


def test_numbers_reach_the_model_as_they_are():
    table = {name: rows()[name] for name in ("size", "visits")}
    values = np.column_stack([table["size"], table["visits"]]).astype(float)
    ours = FrameModel(GaussianMixture(2, random_state=0)).fit(table)
    bare = GaussianMixture(2, random_state=0).fit(values)
    np.testing.assert_array_equal(ours.predict_proba(table), bare.predict_proba(values))
    np.testing.assert_array_equal(ours.log_prob(table), bare.log_prob(values))
    assert ours.score(table) == bare.score(values)


def test_frames_of_every_kind_and_order_mean_the_same():
    table = rows()
    model = FrameModel(Mixture(Normal(), 2, random_state=0)).fit(table)
    expected = model.log_prob(table)
    turned = {name: table[name] for name in reversed(list(table))}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), turned):
        np.testing.assert_array_equal(model.log_prob(frame), expected)


def test_text_is_categorical_beside_another_likelihood():
    table = {name: rows()[name] for name in ("colour", "visits")}
    model = FrameModel(Mixture(Poisson(), 2, random_state=0)).fit(table)
    assert model.model_.likelihood == [Categorical(2), Poisson()]
    codes = np.column_stack([[["blue", "red"].index(c) for c in table["colour"]], table["visits"]]).astype(float)
    bare = Mixture([Categorical(2), Poisson()], 2, random_state=0).fit(codes)
    np.testing.assert_allclose(model.log_prob(table), bare.log_prob(codes))


def test_samples_are_a_table_of_the_same_kinds():
    model = FrameModel(Mixture([Normal(), Poisson(), Categorical(2)], 2, random_state=0), ["size", "visits", "colour"])
    drawn = model.fit(rows()).sample(500, random_state=1, return_hidden=True)
    assert drawn.columns == ["size", "visits", "colour", "component"]
    assert drawn["visits"].dtype.is_integer()
    assert set(drawn["colour"]) == {"red", "blue"}
    by_colour = drawn.group_by("colour").agg(pl.col("visits").mean()).sort("colour")["visits"]
    assert by_colour[0] > 15 > 6 > by_colour[1]  # blue visits 23 times, red 3 times


def test_sequences_are_told_apart_by_their_column():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=30), rng.normal(size=20) + 5
    table = {"who": ["a"] * 30 + ["b"] * 20, "x": np.concatenate([first, second])}
    mixed = rng.permutation(50)
    # the rows of each sequence stay in order, the two are interleaved
    order = np.concatenate([np.sort(mixed[:30]), np.sort(mixed[30:])]).argsort()
    woven = {name: np.asarray(values)[order] for name, values in table.items()}
    model = FrameModel(HiddenMarkov(Normal(), 2, random_state=0), sequence="who").fit(table)
    bare = HiddenMarkov(Normal(), 2, random_state=0).fit([first[:, None], second[:, None]])
    np.testing.assert_allclose(model.log_prob(table), bare.log_prob([first[:, None], second[:, None]]))
    np.testing.assert_array_equal(model.decode(woven), model.decode(table)[order])
    np.testing.assert_allclose(model.predict_proba(woven), model.predict_proba(table)[order])


def test_gaps_are_missing_values():
    table = rows()
    table["size"] = [None if i % 7 == 0 else value for i, value in enumerate(table["size"])]
    model = FrameModel(Mixture(Normal(), 2, random_state=0), ["size", "member"]).fit(table)
    assert np.isfinite(model.log_prob(table)).all()


@pytest.mark.parametrize(
    "model",
    [
        Mixture(Normal(), 2, random_state=0),
        KMeans(2, random_state=0),
        PCA(1),
        HiddenMarkov(Normal(), 2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_saved_model_answers_the_same(tmp_path, model):
    table = {name: rows()[name] for name in ("size", "visits")}
    fitted = FrameModel(model).fit(table)
    fitted.save(tmp_path / "m.likely")
    loaded = load(tmp_path / "m.likely")
    for verb in ("predict", "transform", "predict_proba"):
        if hasattr(fitted.model_, verb):
            np.testing.assert_array_equal(getattr(loaded, verb)(table), getattr(fitted, verb)(table))


def test_bad_tables_are_told_by_the_names_of_their_columns():
    table = rows()
    with pytest.raises(DataError, match="Column 'colour' is text, and KMeans takes numbers; leave it out"):
        FrameModel(KMeans(2)).fit(table)
    with pytest.raises(SpecError, match="model must be a model such as Mixture"):
        FrameModel(Mixture).fit(table)
    with pytest.raises(SpecError, match="columns must be a list"):
        FrameModel(KMeans(2), columns="size").fit(table)
    with pytest.raises(DataError, match="Did you mean 'size'"):
        FrameModel(KMeans(2), columns=["sizes"]).fit(table)
    with pytest.raises(DataError, match="Column 'gap' has no value in any row"):
        FrameModel(KMeans(2)).fit({"gap": [None, None]})
    model = FrameModel(Mixture(Normal(), 2, random_state=0)).fit(table)
    with pytest.raises(DataError, match="Column 'colour' has 'green' at row 0, which training did not show"):
        model.predict({"size": [1.0], "visits": [1], "colour": ["green"], "member": [True]})
    with pytest.raises(DataError, match="Column 'size' was a number in training and is text now: 'a' at row 0"):
        model.predict({"size": ["a"], "visits": [1], "colour": ["red"], "member": [True]})
    with pytest.raises(DataError, match="Mixture has no hidden states to decode; HiddenMarkov has"):
        model.decode(table)
    with pytest.raises(DataError, match="row 1 has none"):
        FrameModel(HiddenMarkov(Normal(), 2), sequence="who").fit({"who": ["a", None], "x": [1.0, 2.0]})
