"""`make demo`: from a table to predictions with intervals, by the functions behind the commands, on real data.

The data: 442 people with diabetes, ten measurements each, and how far the disease had progressed a year later. It comes
with scikit-learn.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from .compare import candidates, leaderboard
from .evaluate import evaluate
from .fit import fit
from .output import (
    command,
    guarded,
    heading,
    lines,
    print_board,
)
from .predict import predict, write_table

__all__ = ["demo"]

TARGET = "progression"
HELD_OUT = 100
FOLDER = Path("demo")


def demo(folder: Path = FOLDER) -> None:
    """Write the table, compare models, fit the best, predict rows it has not seen, and draw them."""
    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    train, test, model = folder / "train.csv", folder / "test.csv", folder / "model.likely"
    rows = _diabetes()
    write_table(rows[HELD_OUT:], train)
    write_table(rows[:HELD_OUT], test)
    heading("A real table: 442 people with diabetes. How far will the disease have progressed in a year?")
    lines({"wrote": f"{train} ({rows.height - HELD_OUT} rows to learn from), {test} ({HELD_OUT} rows held out)"})

    heading("Which model suits it? Five-fold cross-validation; the score is the mean log-probability of unseen rows.")
    command(f"likely compare {train} --target {TARGET} --category sex")
    choices = candidates("regress", rows[HELD_OUT:], TARGET)
    board = leaderboard(rows[HELD_OUT:], TARGET, "regress", choices, category=["sex"])
    print_board(board, f"5 folds of {train}")

    heading(f"Fit the best one, {board.best}, to all training rows, and save it.")
    parts: dict[str, Any] = dict(choices[board.best])
    options = "".join(f' --{axis} "{text}"' for axis, text in parts.items())
    command(f"likely fit {train} --target {TARGET} --category sex{options} --out {model}")
    fit(train, TARGET, category=["sex"], out=model, **parts)

    heading("Predict the people it has not seen, each with an interval that should hold the truth 9 times in 10.")
    command(f"likely predict {model} {test} --interval 0.9 --out {folder / 'predictions.csv'}")
    predict(model, test, interval=0.9, out=folder / "predictions.csv")

    heading("Was it right?")
    command(f"likely evaluate {model} {test}")
    evaluate(model, test)

    heading("And a picture.")
    _draw(model, test, folder / "predictions.png")
    lines({"wrote": str(folder / "predictions.png"), "took": f"{time.perf_counter() - start:.0f} s"})


def _diabetes() -> Any:
    """The table in a random order, in the units of the clinic; sex is a code."""
    import numpy as np
    import polars as pl
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    order = np.random.default_rng(0).permutation(len(data.target))
    names = [*data.feature_names, TARGET]
    rows = pl.DataFrame(np.column_stack([data.data, data.target])[order], schema=names)
    return rows.with_columns(pl.col("age", "sex").cast(pl.Int64))


def _draw(model: Path, test: Path, picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from ..data import read_table
    from ..plots import predictions
    from .options import load_model

    fitted, rows = load_model(model), read_table(test)
    figure, ax = plt.subplots(figsize=(5.0, 4.6), layout="constrained")
    predictions(fitted, rows, fitted.targets(rows), level=0.9, label=TARGET, ax=ax)
    figure.savefig(picture, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # batches this small are quicker on one thread, and many times so on a busy machine
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(guarded(demo))
    app()
