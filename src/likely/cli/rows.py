"""Models of the rows of a table themselves (`--model`): which there are, how they are made, fitted and asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import DataError, SpecError
from ..core.plural import counted
from .output import lines, number, print_json
from .reading import read_kept

if TYPE_CHECKING:
    import polars as pl

    from ..data.reading import Reading
    from ..models import FrameModel

__all__ = ["answers", "fit_rows", "make_model"]

SUPERVISED = (
    *("Classifier", "GaussianProcess", "KernelRidge", "NaiveBayes", "Perceptron", "Regressor", "SupportVector"),
)
"""Models that need a target."""
OTHERS = ("Detector", "Hopfield")
"""Models of other things than the rows of a table of numbers."""


def make_model(text: str, random_state: int, verbose: bool) -> Any:
    """The unfitted model that text such as `mixture(poisson(), n_components=3)` describes."""
    from .. import models
    from ..core.parse import parse_call
    from ..data.text import Tokens
    from ..inference import Inference
    from ..likelihoods import Likelihood
    from ..models.bayesian_network import Structure
    from ..models.language import Blend, NGram
    from ..networks import Network

    def maker(name: str) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            model = getattr(models, name)(*args, **kwargs)
            told = {"random_state": random_state, "verbose": verbose}
            known = model.get_params(deep=False)
            return model.set_params(**{k: v for k, v in told.items() if k in known and k not in kwargs})

        return make

    names = [name for name in models.__all__ if name not in (*SUPERVISED, *OTHERS)]
    axes: list[Any] = [Likelihood, Inference, Network, Tokens, NGram, Blend, Structure]
    try:
        return parse_call(text, {name: maker(name) for name in names}, axes, "model of rows")
    except SpecError as error:
        supervised = text.split("(")[0].replace("_", "").lower() in {name.lower() for name in SUPERVISED}
        hint = " A model of a target is fitted with --target." if supervised else ""
        raise SpecError(f"--model {error}{hint}") from None


def fit_rows(
    table: Path,
    text: str,
    out: Path,
    *,
    sequence: str | None,
    ignore: Sequence[str] | None,
    random_state: int,
    json: bool,
    reading: Reading | None = None,
) -> None:
    """Fit the model that `text` describes to the rows of a table, save it, and say what it found."""
    from ..data.frame import as_frame, column_of
    from ..models import FrameModel

    model = make_model(text, random_state, verbose=not json)
    rows, kept = read_kept(table, reading)
    for name in ignore or ():
        column_of(as_frame(rows, "The table"), name, "The table")
    columns = [name for name in rows.columns if name not in (ignore or ()) and name != sequence]
    fitted = FrameModel(model, columns, sequence)
    start = time.perf_counter()
    fitted.fit(rows)
    seconds = time.perf_counter() - start
    inner = fitted.model_
    result: dict[str, Any] = {"model": str(out), "rows": rows.height, "columns": columns, "seconds": seconds}
    if hasattr(inner, "log_prob"):
        result["log_likelihood"] = float(fitted.log_prob(rows).sum())
    for name in ("inertia_", "n_iter_", "converged_"):
        if hasattr(inner, name):
            value = getattr(inner, name)
            if value is not None:  # no rule says whether it converged
                result[name.removesuffix("_")] = bool(value) if name == "converged_" else float(value)
    fitted.reading_ = kept
    fitted.save(out)
    if json:
        print_json(result)
        return
    fit = [f"{seconds:.2g} s"]
    if "log_likelihood" in result:
        total = result["log_likelihood"]
        unit = "step" if fitted._sequential else "row"
        fit.append(f"log-likelihood {number(total)}, {number(total / rows.height)} per {unit}")
    if "inertia" in result:
        fit.append(f"squared distance {number(result['inertia'])}")
    if result.get("n_iter"):
        fit.append(counted(int(result["n_iter"]), "step"))
    lines(
        {
            "table": f"{table}: {rows.height} rows of {', '.join(columns)}",
            "model": repr(inner),
            **({"graph": inner.factorisation()} if hasattr(inner, "factorisation") else {}),
            "fit": "; ".join(fit),
            "saved": str(out),
        }
        | _questions(inner, out)
    )


def _questions(inner: Any, out: Path) -> dict[str, str]:
    """The commands that a fitted model can answer."""
    fills = getattr(inner, "takes_tables", False) and hasattr(inner, "impute")
    tells = (hasattr(inner, "predict_proba") or hasattr(inner, "transform")) and not _asks_for_a_column(inner)
    able = {"decode": hasattr(inner, "decode"), "impute": fills, "predict": tells}
    first = [f"likely {verb} {out} TABLE" for verb, can in able.items() if can][:1]
    questions = [*first, *([f"likely sample {out}"] if hasattr(inner, "sample") else [])]
    return {"next": ", or ".join(questions)} if questions else {}


def _asks_for_a_column(inner: Any) -> bool:
    """Whether a prediction must say of which column it is."""
    from inspect import signature

    return "target" in signature(getattr(inner, "predict_proba", len)).parameters


def answers(model: FrameModel, rows: pl.DataFrame) -> pl.DataFrame:
    """What a model of rows says of each: its component or state with probabilities, or its latent code."""
    import polars as pl

    columns: dict[str, Any] = {}
    inner = model.model_
    if _asks_for_a_column(inner):
        raise DataError(
            f"{type(inner).__name__} tells any column by the others: leave it empty in the rows that are asked, and "
            "`likely impute` fills it in."
        )
    if hasattr(inner, "predict_proba"):
        columns[model.hidden_name] = model.predict(rows)
        probability = model.predict_proba(rows)
        columns |= {f"p_{k}": probability[:, k] for k in range(probability.shape[1])}
    elif hasattr(inner, "transform"):
        code = model.transform(rows)
        if hasattr(inner, "cluster_centers_"):
            columns["cluster"] = model.predict(rows)
            columns |= {f"distance_{k}": code[:, k] for k in range(code.shape[1])}
        else:
            columns |= {f"z_{k}": code[:, k] for k in range(code.shape[1])}
    else:
        raise DataError(f"{type(inner).__name__} has no answer for single rows.")
    if hasattr(inner, "log_prob"):
        log_prob = model.log_prob(rows)
        if len(log_prob) == rows.height:
            columns["log_prob"] = log_prob
    return pl.DataFrame(columns)
