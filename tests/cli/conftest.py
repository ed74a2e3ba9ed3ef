from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from likely.cli.app import app
from likely.data import write_image


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def invoke(*words: object) -> Ran:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return invoke


@pytest.fixture
def refused() -> Callable[..., None]:
    """One line on standard error that has the messages, nothing on standard output, exit code 2."""

    def check(ran: Ran, *messages: str) -> None:
        assert ran.code == 2, ran
        assert ran.out == ""
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == 1
        for message in messages:
            assert message in ran.err

    return check


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with every kind of column: numbers with gaps, text, booleans, dates, a constant, an identifier."""
    rng, n = np.random.default_rng(0), 120
    age, city = rng.normal(40, 12, n).round(1), rng.permutation(["Bergen"] * 50 + ["Oslo"] * 40 + ["Å, i Lofoten"] * 30)
    member = rng.random(n) < 0.4
    spend = (5 + 0.1 * age + 2.0 * member + rng.normal(0, 1, n)).round(2)
    frame = pl.DataFrame(
        {
            "id": [f"c{i}" for i in range(n)],
            "age": [None if i % 9 == 4 else value for i, value in enumerate(age)],
            "city": city,
            "member": member,
            "since": [dt.date(2022, 1, 1) + dt.timedelta(days=7 * i) for i in range(n)],
            "country": ["NO"] * n,
            "spend": spend,
            "visits": rng.poisson(9, n),
            "outcome": np.where(spend + rng.normal(0, 1.5, n) > 10, "buys", "leaves"),
        }
    )
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    frame.write_csv(path)
    return path


def fitted(shop: Path, folder: Path, target: str, *options: str) -> Path:
    path = folder / f"{target}.likely"
    ran = invoke("fit", shop, "--target", target, "--ignore", "id", "--out", path, *options)
    assert ran.code == 0, ran.err
    return path


@pytest.fixture(scope="session")
def regressor(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted(shop, tmp_path_factory.mktemp("regressor"), "spend")


@pytest.fixture(scope="session")
def classifier(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted(shop, tmp_path_factory.mktemp("classifier"), "outcome", "--prior", "normal(scale=1.0)")


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Images of 16 × 16 pixels with a bright square, and masks of 0 and 255."""
    folder, rng = tmp_path_factory.mktemp("cells"), np.random.default_rng(1)
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for i in range(8):
        image, mask = rng.uniform(0, 0.3, (16, 16)), np.zeros((16, 16), int)
        row, column = rng.integers(0, 9, 2)
        image[row : row + 7, column : column + 7] += 0.6
        mask[row : row + 7, column : column + 7] = 255
        write_image(folder / "images" / f"{i}.png", image)
        write_image(folder / "masks" / f"{i}_mask.png", mask)
    return folder


@pytest.fixture(scope="module")
def pixels(cells, tmp_path_factory):
    path = tmp_path_factory.mktemp("pixels") / "cells.likely"
    words = ("fit", cells / "images", "--masks", cells / "masks", "--network", "u_net(channels=[4,8])")
    ran = invoke(*words, "--inference", "map(adam(0.02), epochs=10, batch_size=4)", "--out", path)
    assert ran.code == 0, ran.err
    assert "masks of 2 classes" in ran.out
    return path
