"""Options that several commands share, and the model that they describe."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError, ModelFileError, SpecError

if TYPE_CHECKING:
    import polars as pl

    from ..core.spec import Spec
    from ..models import FrameModel, LanguageModel, TableModel

__all__ = [
    "CategoryOption",
    "IgnoreOption",
    "JsonOption",
    "ModelArgument",
    "RandomStateOption",
    "TableArgument",
    "TargetOption",
    "TaskOption",
    "UnseenOption",
    "build_model",
    "check_out",
    "file_name",
    "in_words",
    "load_any",
    "load_model",
    "parts_of",
    "read_target",
    "with_target",
]

MOST_CLASSES = 20
"""Different values of a target up to which numbers among them may well be names of classes."""
TYPOS = 10
"""One value in so many, at most, is a typing error."""

TableArgument = Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV, TSV or Parquet file.", show_default=False)]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file that `likely fit` wrote.", show_default=False)
]
TargetOption = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.")]
TaskOption = Annotated[
    str, typer.Option("--task", metavar="TASK", help="`regress`, `classify`, or `auto`: by what the target holds.")
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="A column to leave out. May be repeated.")
]
CategoryOption = Annotated[
    list[str] | None,
    typer.Option("--category", metavar="COLUMN", help="A column of numbers that are categories. May be repeated."),
]
UnseenOption = Annotated[
    str,
    typer.Option(
        "--unseen",
        metavar="error|ignore",
        help="What a category or gap that training did not show gets: an error, or the most common value.",
    ),
]
RandomStateOption = Annotated[
    int, typer.Option("--random-state", metavar="NUMBER", help="Seed of all randomness.", min=0)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]

AXES = ("likelihood", "network", "prior", "inference")


def read_target(rows: pl.DataFrame, target: str, task: str) -> tuple[str, str]:
    """The task for this target, and why."""
    from ..data.frame import as_frame, column_of
    from ..data.target import task_of

    if task not in ("auto", "regress", "classify"):
        raise SpecError(f"--task {task!r}: task must be regress, classify or auto.")
    guess, why = task_of(column_of(as_frame(rows, "The table"), target, "The table"))
    if task != "auto":
        return task, "as told"
    _refuse_spoilt_numbers(rows[target])
    return guess, f"since {why}; --task overrides"


def _refuse_spoilt_numbers(target: pl.Series) -> None:
    """Raise if a target of numbers is text because of a few values: each number would be a class.

    A few different values may be names of classes (3, 3+, 4), unless all but a typo here and there are numbers.
    """
    import polars as pl

    from ..data.notes import note
    from ..data.written import mostly_numbers, shown_at, why_text

    why = why_text(target) if target.dtype == pl.String else ""
    rows = mostly_numbers(target) if why else []
    classes = target.n_unique()
    if not why or (classes <= MOST_CLASSES and rows and not _typos(target, rows)):
        return
    note(why)  # shown once: a file has told it when it was read, a frame has not
    cells = f" because of {shown_at(target, rows)}" if rows else ""
    raise DataError(
        f"Target column {target.name!r} is text{cells}, as noted, so each of its {classes} different values would be a "
        "class. Fix it as the note says, or take every value for a class (--task classify)."
    )


def _typos(target: pl.Series, rows: list[int]) -> bool:
    """Whether these rows are typing errors among numbers: a tenth at most, and none the same as another."""
    few = len(rows) <= max(1, (len(target) - target.null_count()) // TYPOS)
    return few and target[rows].n_unique() == len(rows)


def with_target(rows: pl.DataFrame, target: str) -> pl.DataFrame:
    """The rows whose target is not missing."""
    from ..data.frame import as_frame, column_of
    from ..data.target import is_missing

    missing = is_missing(column_of(as_frame(rows, "The table"), target, "The table"))
    if missing.all():
        raise DataError(f"Target column {target!r} has no value in any of the {rows.height} rows.")
    return rows.filter((~missing).tolist())


def build_model(
    task: str,
    parts: Mapping[str, str],
    target: str,
    *,
    ignore: Sequence[str] | None = None,
    category: Sequence[str] | None = None,
    unseen: str = "error",
    random_state: int = 0,
    verbose: bool = False,
    text: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> TableModel:
    """The unfitted model of a table, or of its column `text`.

    `parts` are the texts of its likelihood, network, prior and inference, and of what cuts texts into tokens.
    """
    from .. import Classifier, Regressor
    from ..data import Table
    from ..data.text_column import TextColumn
    from ..inference import Inference
    from ..likelihoods import Likelihood
    from ..models import TableModel
    from ..networks import Network
    from ..priors import Prior

    axes: dict[str, type[Spec]] = {"likelihood": Likelihood, "network": Network, "prior": Prior, "inference": Inference}
    tokens = {name: words for name, words in parts.items() if name == "tokens"}
    chosen: dict[str, Any] = {name: axes[name].parse(words) for name, words in parts.items() if name != "tokens"}
    model: Any = Regressor(**chosen, random_state=random_state, verbose=verbose)
    if task == "classify":
        model = Classifier(**chosen, random_state=random_state, verbose=verbose)
    if text is not None:
        return TableModel(model.set_params(**tokens), target, TextColumn(text), offset, exposure)
    table = Table(ignore=tuple(ignore or ()), categories=tuple(category or ()), unseen=unseen)  # type: ignore[arg-type]
    return TableModel(model, target, table, offset, exposure)


def in_words(model: TableModel) -> str:
    """The four parts of a model, each as the call that makes it."""
    return ", ".join(f"{axis} {getattr(model.model, axis)}" for axis in AXES if hasattr(model.model, axis))


def parts_of(text: str) -> dict[str, str]:
    """`network=mlp(hidden=[8]), prior=normal()` as texts by name. Nothing is evaluated.

    >>> parts_of("network=mlp(hidden=[8]), prior=normal()")
    {'network': 'mlp(hidden=[8])', 'prior': 'normal()'}
    """
    try:
        call = ast.parse(f"model({text})", mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        call = None
    if not isinstance(call, ast.Call) or call.args or not call.keywords:
        raise SpecError(f"--models {text!r}: write its parts as in network=mlp(hidden=[64]), prior=normal(scale=1.0).")
    names = [keyword.arg for keyword in call.keywords]
    for name in names:
        if name not in AXES or names.count(name) > 1:
            raise SpecError(f"--models {text!r}: {name!r} is not one of {', '.join(AXES)}, each at most once.")
    return {str(keyword.arg): ast.unparse(keyword.value) for keyword in call.keywords}


def load_model(path: Path, unseen: str = "error") -> TableModel:
    """The model of a table in a file."""
    from .. import load
    from ..data import Table
    from ..models import TableModel

    if unseen not in ("error", "ignore"):
        raise SpecError(f"--unseen {unseen!r}: unseen must be error or ignore.")
    model = load(path)
    if not isinstance(model, TableModel):
        raise ModelFileError(_other_way(path, model))
    if isinstance(model.table_, Table):
        model.table_.set_params(unseen=unseen)
    return model


def _other_way(path: Path, model: Any) -> str:
    """Why a model is not one of tables, and where its questions are answered."""
    from sklearn.base import is_classifier, is_regressor

    name, article = type(model).__name__, "an" if type(model).__name__[0] in "AEIOU" else "a"
    kinds = {
        "Forecaster": f"of series: in Python likely.load({str(path)!r}).predict(steps) goes on from its rows; "
        "`likely forecast TABLE` fits one anew",
        "Detector": f"of images: `likely detect {path} IMAGES --boxes FILE` measures it",
        "FrameModel": f"of rows without a target: `likely sample {path}` draws rows, `likely evaluate {path} TABLE` "
        "scores them",
        "LanguageModel": f"of language: `likely sample {path}` writes, `likely evaluate {path} TEXT` scores",
        **dict.fromkeys(("MaskedLanguageModel", "Seq2Seq", "WordVectors"), "of texts, which Python asks: likely.load"),
    }
    if name in kinds:
        return f"{path} holds {article} {name}, a model {kinds[name]}."
    wrap = "TableModel(model, target)" if is_classifier(model) or is_regressor(model) else "FrameModel(model)"
    return (
        f"{path} holds {article} {name}, which takes arrays; the command line needs a model of tables, as `likely fit` "
        f"or {wrap}.fit(frame).save writes. In Python: likely.load({str(path)!r})."
    )


def load_any(path: Path, unseen: str = "error") -> TableModel | FrameModel | LanguageModel:
    """The model of a target, of the rows of a table themselves, or of language, in a file."""
    from .. import load
    from ..models import FrameModel, LanguageModel

    model = load(path)
    return model if isinstance(model, FrameModel | LanguageModel) else load_model(path, unseen)


def file_name(text: str) -> str:
    """Text as a part of a file's name.

    >>> file_name("price in €/m²")
    'price_in_m²'
    """
    return re.sub(r"[^-.\w]+", "_", text)


def check_out(path: Path | None, endings: Sequence[str] = (), option: str = "--out") -> None:
    """Say before the work, not after it, that its result cannot be written."""
    if path is None:
        return
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise DataError(f"{option} {path}: the ending is not known; use one of {', '.join(endings)}.")
    if path.is_dir():
        raise DataError(f"{option} {path} is a folder; give a file name in it.")
    if not path.parent.is_dir():
        raise DataError(f"{option} {path}: there is no folder {path.parent}; make it first.")
