"""Every command that takes a table has the options of how it is written; a model keeps them for later tables."""

from __future__ import annotations

import polars as pl
import pytest
from typer.main import get_command

import likely
from likely.cli.app import COMMANDS, app
from likely.cli.reading import OPTIONS

pytestmark = pytest.mark.filterwarnings("always::likely.core.errors.ReadingNote")
ROWS = "x|city|price\n" + "".join(f"{i},5|{'ab'[i % 2]}|{1000 + i}\n" if i != 3 else "3,5|b|none\n" for i in range(12))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_takes_a_table_has_the_options(name):
    options = {option.name for option in get_command(app).commands[name].params}  # type: ignore[attr-defined]
    assert (set(OPTIONS) <= options) == ("table" in options)
    assert "reading" not in options


def test_what_was_told_holds_for_later_tables(run, tmp_path):
    """1.234 is a thousand in the new table, since the training table had decimal commas."""
    (tmp_path / "old.csv").write_text(ROWS)
    ran = run("fit", "old.csv", "-t", "price", "--separator", "|", "--missing", "none", "-o", "m.likely", "--json")
    assert (ran.code, ran.json()["rows"]) == (0, 11)
    assert dict(likely.load(tmp_path / "m.likely").reading_) == {"separator": "|", "decimal": ",", "missing": ["none"]}
    (tmp_path / "new.csv").write_text("x|city\n1.234|a\n2.000|b\n")
    ran = run("predict", "m.likely", "new.csv")
    assert "new.csv is read as the table of training was: separator '|', decimal ','" in ran.err
    assert pl.read_csv(ran.out.encode())["price_predicted"].to_list() == pytest.approx([2233.5, 2999.5], rel=1e-3)
    told = run("predict", "m.likely", "new.csv", "--decimal", ".")
    assert pl.read_csv(told.out.encode())["price_predicted"].to_list() == pytest.approx([1000.734, 1001.5], rel=1e-3)


def test_models_of_rows_keep_it_too(run, tmp_path):
    (tmp_path / "old.csv").write_text(ROWS.replace("|", ";"))
    ran = run("fit", "old.csv", "-m", "pca(n_components=1)", "--ignore", "city", "--missing", "none", "-o", "m.likely")
    assert ran.code == 0, ran
    assert run("evaluate", "m.likely", "old.csv", "--json").json()["rows"] == 12


def test_compare_says_it_again(run, tmp_path):
    (tmp_path / "old.csv").write_text(ROWS)
    ran = run("compare", "old.csv", "-t", "price", "--missing", "none", "--model", "linear", "--folds", "2")
    assert "likely fit old.csv --target price --missing none" in ran.out


def test_wrong_marks_are_refused(run, refused, tmp_path):
    (tmp_path / "old.csv").write_text(ROWS)
    refused(run("fit", "old.csv", "-t", "price", "--decimal", "x"), "decimal='x'")
    refused(run("fit", "old.csv", "-t", "price", "--encoding", "klingon"), "encoding='klingon' is not known")
