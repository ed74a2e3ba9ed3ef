"""`likely fit`: the model it saves is the one that Python would fit; bad input gets one line and exit code 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely import Regressor, TableModel, load
from likely.data import Table, read_table


def test_it_saves_what_python_would_fit(run, shop, regressor):
    rows = read_table(shop)
    expected = TableModel(Regressor(), "spend", Table(ignore=["id"])).fit(rows)
    np.testing.assert_allclose(load(regressor).predict(rows), expected.predict(rows), rtol=1e-6)


def test_what_it_says(run, shop):
    ran = run("fit", shop, "--target", "outcome", "--ignore", "id", "--prior", "normal(scale=1.0)")
    assert ran.code == 0
    assert "outcome: classify, since it holds text; --task overrides" in ran.out
    assert "prior Normal()" in ran.out
    assert "country: the same in every row" in ran.out
    assert "saved     shop-outcome.likely" in ran.out
    assert Path("shop-outcome.likely").exists()


def test_json_is_all_there_is_on_standard_output(run, shop):
    said = run("fit", shop, "-t", "spend", "--ignore", "id", "--out", "m.likely", "--json").json()
    assert said["model"] == "m.likely"
    assert said["task"] == "regress"
    assert said["rows"] == 120
    assert said["constant"] == ["country"]
    assert "city=Oslo" in said["features"]
    assert 0 < said["training_score"] <= 1


def test_parts_are_read_from_text(run, shop):
    options = ["--likelihood", "poisson()", "--network", "linear(bias=true)", "--inference", "newton(max_iter=50)"]
    assert run("fit", shop, "-t", "visits", "--ignore", "id", *options, "--out", "m.likely").code == 0
    model = load("m.likely").model
    assert (repr(model.likelihood), repr(model.inference)) == ("Poisson()", "Newton(max_iter=50)")


def test_the_same_seed_gives_the_same_model(run, shop):
    small = ["--network", "mlp(hidden=[4])", "--inference", "map(epochs=3)", "--ignore", "id"]
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert run("fit", shop, "-t", "spend", *small, "--random-state", seed, "--out", name).code == 0
    rows = read_table(shop)
    a, b, c = (load(name).predict(rows) for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@pytest.mark.parametrize(
    ("values", "task"),
    [([0, 1] * 5, "classify"), ([1, 2, 3, 4, 5] * 2, "classify"), ([0, 2] * 5, "regress"), (range(10), "regress")],
)
def test_whole_numbers_from_0_or_1_are_codes(run, values, task):
    pl.DataFrame({"x": np.arange(10.0) % 4, "y": list(values)}).write_csv("t.csv")
    assert run("fit", "t.csv", "-t", "y", "--prior", "normal(scale=1.0)", "--json").json()["task"] == task
    other = {"classify": "regress", "regress": "classify"}[task]
    told = run("fit", "t.csv", "-t", "y", "--prior", "normal(scale=1.0)", "--task", other, "--json")
    assert told.json()["task"] == other


def test_a_negative_code_is_a_class_in_a_table(run):
    pl.DataFrame({"x": np.arange(30.0) % 7, "y": [-1, 0, 1] * 10}).write_csv("t.csv")
    assert run("fit", "t.csv", "-t", "y", "--task", "classify", "--prior", "normal()", "--out", "m").code == 0
    assert list(load("m").classes_) == [-1, 0, 1]


def test_weights_are_a_column_and_no_feature(run):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=40), rng.integers(0, 3, 40)
    rows = pl.DataFrame({"x": x, "y": 2 * x + rng.normal(size=40), "w": w})
    rows.write_csv("weighted.csv")
    rows[np.repeat(np.arange(40), w)].drop("w").write_csv("repeated.csv")
    assert run("fit", "weighted.csv", "-t", "y", "--weight", "w", "--out", "a").code == 0
    assert run("fit", "repeated.csv", "-t", "y", "--out", "b").code == 0
    np.testing.assert_allclose(load("a").predict(rows), load("b").predict(rows), rtol=1e-4)


def test_one_row_is_too_few(run, refused):
    Path("one.csv").write_text("x,y\n1,2.5\n")
    refused(run("fit", "one.csv", "-t", "y"), "has a value in 1 of 1 rows; at least 2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.csv is empty"),
        ("x,y\n", "has columns (x, y) but no rows"),
        ("x,x,y\n1,2,3\n", "more than one column named 'x'"),
        ("x,y\n1,2\n3,4,5\n", "line 3: 3 fields where the first line names 2"),
        ("x,y\n1,1.5\ninf,2.5\n2,3.5\n", "Column 'x' has an infinite value (inf at row 1"),
        ("x,y\n1,1.5\n2,inf\n2,3.5\n", "Column 'y' has an infinite value (inf at row 1"),
        ("x,y\n1,\n2,\n", "Target column 'y' has no value in any row"),
        ("y\n1.5\n2.5\n", "no column besides the target 'y'"),
        ("x,y\n1,a\n2,a\n3,a\n", "class"),
    ],
)
def test_tables_that_cannot_be_fitted(run, text, message, refused):
    Path("bad.csv").write_text(text)
    refused(run("fit", "bad.csv", "-t", "y"), message)
    assert not Path("bad-y.likely").exists()


def test_constant_and_equal_columns_can_be_fitted(run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    pl.DataFrame({"a": x, "b": x, "c": [7] * 30, "y": x + rng.normal(size=30)}).write_csv("t.csv")
    said = run("fit", "t.csv", "-t", "y", "--json").json()
    assert said["constant"] == ["c"]
    assert np.isfinite(said["training_log_score"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--network", "mpl(hidden=[4])"], "Unknown network 'mpl'. Did you mean MLP?"),
        (["--network", "mlp(hiden=[4])"], "MLP has no argument 'hiden'"),
        (["--prior", "normal(scale=-1)"], "Normal(scale=-1): scale must be"),
        (["--likelihood", "normal("], "Cannot read 'normal('"),
        (["--likelihood", "categorical()"], "describes classes"),
        (["--inference", "__import__('os')"], "__import__"),
        (["--task", "cluster"], "task must be regress, classify or auto"),
        (["--target", "spent"], "no column 'spent'. Did you mean 'spend'?"),
        (["--weight", "city"], "Weight column 'city' must hold numbers"),
        (["--ignore", "town"], "no column 'town'"),
        (["--out", "nowhere/model.likely"], "there is no folder nowhere"),
        (["--out", "."], "is a folder"),
        (["--category", "id"], "Column 'id' is text with 120 different values"),
    ],
)
def test_options_that_cannot_be_met(run, shop, options, message, refused):
    ignored = [] if options[0] == "--category" else ["--ignore", "id"]
    refused(run("fit", shop, "--target", "spend", *ignored, *options), message)


def test_an_identifier_is_refused_with_the_remedy(run, shop, refused):
    refused(run("fit", shop, "-t", "spend"), "Column 'id'", "--ignore")


def test_a_missing_table_is_named(run, refused):
    refused(run("fit", "none.csv", "-t", "y"), "No table at none.csv")


@pytest.mark.parametrize("options", [[], ["--random-state", "many"], ["--random-state", "-1"], ["--colour", "red"]])
def test_usage_errors_have_code_2(run, shop, options):
    ran = run("fit", shop, *(["-t", "spend"] if options else []), *options)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_a_folder_without_permission(run, shop, refused, monkeypatch):
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("likely.core.files.save_file", denied)
    ran = run("fit", shop, "-t", "spend", "--ignore", "id", "--out", "model.likely")
    refused(ran, "Cannot write", "model.likely: Permission denied")
    assert list(Path().iterdir()) == []


def test_an_exposure_makes_rates_and_is_kept_in_the_file(run, refused):
    rng = np.random.default_rng(0)
    years = rng.uniform(0.5, 4, 80).round(2)
    rows = pl.DataFrame({"age": rng.normal(40, 9, 80).round(1), "years": years, "n": rng.poisson(years)})
    rows.write_csv("claims.csv")
    ran = run("fit", "claims.csv", "--target", "n", "--exposure", "years")
    assert ran.code == 0
    assert "n: regress, since --exposure is of counts and amounts; --task overrides; its mean is per unit of years" in (
        ran.out
    )
    assert "Poisson(), since the target has integers from 0" in ran.out
    assert "years multiplies its mean" in ran.out
    model = load("claims-n.likely")
    assert (model.exposure, model.table_.feature_names_) == ("years", ["age"])
    said = run("evaluate", "claims-n.likely", "claims.csv", "--json").json()
    assert said["log_score"] == pytest.approx(float(model.log_prob(rows).mean()))
    rows.drop("years").write_csv("bare.csv")
    refused(run("predict", "claims-n.likely", "bare.csv"), "no column 'years'")
    refused(run("fit", "claims.csv", "--model", "pca()", "--exposure", "years"), "--exposure cannot be given with it")
    rows.with_columns(n=rows["n"] - 0.5).write_csv("odd.csv")
    refused(
        run("fit", "odd.csv", "-t", "n", "--exposure", "years"), "counts 0, 1, 2, … or of amounts above 0", "--offset"
    )


def test_a_bayesian_network_learns_its_graph_and_fills_gaps(run, refused):
    rng = np.random.default_rng(0)
    rain = rng.random(200) < 0.3
    wet = np.where(rng.random(200) < 0.9, rain, ~rain)
    rows = pl.DataFrame(
        {"rain": np.where(rain, "yes", "no"), "wet": np.where(wet, "yes", "no"), "size": rng.random(200)}
    )
    rows.write_csv("days.csv")
    refused(
        run("fit", "days.csv", "--model", "bayesian_network()"),
        "'size' (200 different values) has too many: leave them out (--ignore on the command line), or cut numbers "
        "into ranges (pandas.qcut(frame['size'], 5)",
    )
    for structure in ("", "structure=chow_liu()"):
        ran = run(
            "fit", "days.csv", "--model", f"bayesian_network({structure})", "--ignore", "size", "-o", "net.likely"
        )
        assert ran.code == 0
        assert "p(rain) p(wet | rain)" in ran.out or "p(wet) p(rain | wet)" in ran.out
        assert "next      likely impute net.likely TABLE" in ran.out
    shown = run("show", "net.likely").out
    assert "rain → wet" in shown or "wet → rain" in shown
    assert "rain: no, yes" in shown
    pl.DataFrame({"rain": ["yes", "no"], "wet": [None, None]}, schema_overrides={"wet": pl.String}).write_csv("ask.csv")
    assert [row["wet"] for row in run("impute", "net.likely", "ask.csv", "--json").json()["table"]] == ["yes", "no"]
    assert run("evaluate", "net.likely", "days.csv", "--json").json()["log_score"] < 0
    assert run("sample", "net.likely", "--json").code == 0
    refused(run("predict", "net.likely", "days.csv"), "tells any column by the others", "`likely impute`")


@pytest.mark.filterwarnings("always::likely.core.errors.ReadingNote")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_numbers_that_a_few_values_spoil_are_not_taken_for_classes(run, ending):
    """Which they are is told once, by the note of the file or, where a file has types of its own, of the target."""
    spoilt = pl.DataFrame({"x": range(60), "price": ["n.k.", *(f"{number}.5" for number in range(59))]})
    spoilt.write_csv("spoilt.csv")
    spoilt.write_parquet("spoilt.parquet")
    ran = run("fit", f"spoilt.{ending}", "--target", "price")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("1 of 60 values is not a number ('n.k.' at row 0, counted from 0)") == 1
    assert (
        "error: Target column 'price' is text because of 'n.k.' at row 0, as noted, so each of its 60 different values "
        "would be a class" in ran.err
    )
    ran = run("fit", "spoilt.csv", "--target", "price", "--missing", "n.k.")
    assert "price: regress" in ran.out


@pytest.mark.filterwarnings("always::likely.core.errors.ReadingNote")
@pytest.mark.parametrize("labels", [["3", "3+", "4", "4+", "5"] * 4, ["1", "2", "3", "s", "t", "u"]])
def test_numbers_among_few_labels_may_be_their_names(run, labels):
    pl.DataFrame({"x": range(len(labels)), "grade": labels}).write_csv("grades.csv")
    assert "grade: classify" in run("fit", "grades.csv", "--target", "grade", "--prior", "normal(1.0)").out


@pytest.mark.filterwarnings("always::likely.core.errors.ReadingNote")
def test_one_typo_does_not_make_classes_of_a_few_numbers(run):
    prices = ["400,00", "510,00", "8S0,00", "690,00", "800,00", "905,00"]
    pl.DataFrame({"area": range(6), "price": prices}).write_csv("firms.csv", separator=";")
    ran = run("fit", "firms.csv", "--target", "price")
    assert (ran.code, ran.out) == (2, "")
    assert "Target column 'price' is text because of '8S0,00' at row 2, as noted" in ran.err
    ran = run("fit", "firms.csv", "--target", "price", "--task", "regress")
    assert "Target column 'price' holds text ('8S0,00' at row 2, counted from 0)" in ran.err


def test_a_column_without_a_value_is_said_to_be_missing_not_the_same(run):
    pl.DataFrame({"x": range(9), "gone": [None] * 9, "one": [1] * 9, "y": [0.0, 1.0, 3.0] * 3}).write_csv("t.csv")
    said = run("fit", "t.csv", "--target", "y").out
    assert "one: the same in every row, so of no use; gone: missing in every row, so of no use" in said


@pytest.mark.filterwarnings("always::likely.core.errors.ReadingNote")
def test_a_target_in_two_units_is_refused(run):
    prices = [f"{mark}{number}" for number, mark in zip(range(40), "$€" * 20, strict=True)]
    pl.DataFrame({"x": range(40), "price": prices}).write_csv("units.csv")
    ran = run("fit", "units.csv", "--target", "price")
    assert ran.code == 2
    assert ran.err.count("`price` is text: '$0' and '€1' are in different units") == 1
    assert "Target column 'price' is text, as noted" in ran.err
