"""Output: JSON without NaN, numbers with four digits, errors and warnings in one line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import typer

from likely.cli.output import guarded, number, print_json, print_table, save_picture
from likely.core.errors import DataError, ReadingNote


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.567, "1235"),
        (0.000123456, "0.0001235"),
        (12.3456, "12.35"),
        (7, "7"),
        (1e9, "1e+09"),
        (None, ""),
        ("a", "a"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert number(value) == text


def test_json_knows_no_nan(capsys):
    print_json({"a": float("nan"), "b": np.arange(2), "c": np.float64(0.5), "d": [np.inf], "e": "å"})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [0, 1], "c": 0.5, "d": [None], "e": "å"}


@pytest.mark.parametrize("error", [DataError("x is\nbad"), FileNotFoundError(2, "No file", "a.csv"), OSError("odd")])
def test_what_a_person_can_mend_is_one_line(error, capsys):
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as ended:
        guarded(command)()
    err = capsys.readouterr().err
    assert ended.value.exit_code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_fault_of_ours_is_not_hidden():
    def command() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guarded(command)()


def test_warnings_are_one_line(capsys):
    def command() -> None:
        warnings.simplefilter("always")
        warnings.warn("not\nconverged", UserWarning, stacklevel=1)

    guarded(command)()
    assert capsys.readouterr().err == "warning: not converged\n"


def test_square_brackets_are_text_not_markup(capsys):
    print_table("[bold]", ["network"], [("mlp(hidden=[64,64])",)])
    out = capsys.readouterr().out
    assert "mlp(hidden=[64,64])" in out
    assert "[bold]" in out


def test_the_keyboard_stops_with_one_line_and_leaves_no_part_of_a_file(tmp_path, capsys, monkeypatch):
    from matplotlib.figure import Figure

    target = tmp_path / "picture.png"

    def stop(figure, path, **_):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", stop)
    with pytest.raises(typer.Exit) as ended:
        guarded(save_picture)(Figure(), target, 50)
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "stopped: by the keyboard; no file was left half written\n"
    assert list(tmp_path.iterdir()) == []


def test_the_keyboard_before_a_command_began(capsys, monkeypatch):
    from likely.cli import app, main

    def stop(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", stop)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err.startswith("stopped: by the keyboard")


def test_pictures_have_the_ending_of_a_picture(tmp_path):
    from matplotlib.figure import Figure

    save_picture(Figure(figsize=(1, 1)), tmp_path / "a.png", 50)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DataError, match=r"Cannot write .*a\.odd: .*[Ff]ormat 'odd' is not supported"):
        save_picture(Figure(figsize=(1, 1)), tmp_path / "a.odd", 50)


def test_an_error_of_several_columns_has_a_line_for_each(capsys):
    @guarded
    def command():
        raise DataError("2 columns do not fit:\n- Column 'a' is\n  text.\n- Column 'b' is text.")

    with pytest.raises(typer.Exit):
        command()
    said = capsys.readouterr().err
    assert said == "error: 2 columns do not fit:\n- Column 'a' is text.\n- Column 'b' is text.\n"


@pytest.mark.filterwarnings("default::likely.core.errors.ReadingNote")
def test_why_a_column_is_text_is_told_once(capsys):
    """A file and the table made of it both tell, of other numbers of rows."""

    @guarded
    def command():
        for message in ("`a` is text: 2 of 120 values …", "`a` is text: 2 of 100 values …", "`b` is text: 1 …"):
            warnings.warn(message, ReadingNote, stacklevel=1)

    command()
    assert capsys.readouterr().err == "note: `a` is text: 2 of 120 values …\nnote: `b` is text: 1 …\n"
