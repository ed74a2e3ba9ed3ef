"""`likely fit`: learn a model from a table and save it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import SpecError
from .compare import family_of, family_with_exposure
from .detect import fit_boxes
from .images import fit_images, is_images
from .options import (
    CategoryOption,
    IgnoreOption,
    JsonOption,
    RandomStateOption,
    TableArgument,
    TaskOption,
    build_model,
    check_out,
    file_name,
    in_words,
    read_target,
    with_target,
)
from .output import lines, number, print_json
from .reading import read_kept, reads_tables
from .rows import fit_rows, make_model
from .texts import CLASS, TEXT, fit_language, is_texts, read_rows, text_column

__all__ = ["fit"]


def _part(name: str, example: str) -> typer.models.OptionInfo:
    return typer.Option(f"--{name}", metavar="SPEC", help=f"Such as `{example}`; see `likely list {name}`.")


@reads_tables
def fit(
    table: TableArgument,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Instead of a target: a model of the rows, such as `gaussian_mixture(n_components=3)`.",
        ),
    ] = None,
    task: TaskOption = "auto",
    likelihood: Annotated[str | None, _part("likelihood", "student_t()")] = None,
    network: Annotated[str | None, _part("network", "mlp(hidden=[64,64])")] = None,
    prior: Annotated[str | None, _part("prior", "normal(scale=1.0)")] = None,
    inference: Annotated[str | None, _part("inference", "ensemble(members=5)")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="MODEL", help="Where to save; by default TABLE-COLUMN.likely, here."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="The column with the weights of the rows.")
    ] = None,
    exposure: Annotated[
        str | None,
        typer.Option(
            "--exposure",
            metavar="COLUMN",
            help="For how long, or among how many, the events of a row were counted: the mean grows with it.",
        ),
    ] = None,
    offset: Annotated[
        str | None, typer.Option("--offset", metavar="COLUMN", help="A column that is added to η, its coefficient 1.")
    ] = None,
    sequence: Annotated[
        str | None,
        typer.Option("--sequence", metavar="COLUMN", help="With --model: which sequence each row belongs to."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="The column whose texts the model reads, and no other column."),
    ] = None,
    tokens: Annotated[str | None, _part("tokens", "words(min_count=2)")] = None,
    boxes: Annotated[
        Path | None,
        typer.Option("--boxes", metavar="FILE", help="Of a folder of images: a COCO .json, or a folder of VOC .xml."),
    ] = None,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="FOLDER", help="Of a folder of images: masks by name, a class per pixel."),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="HxW", help="Of images: the size they are brought to.")
    ] = None,
    ignore: IgnoreOption = None,
    category: CategoryOption = None,
    random_state: RandomStateOption = 0,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Fit a model to the rows of TABLE and save it.

    With --target alone it is linear regression for numbers and logistic regression for labels; with --model it is a
    model of the rows themselves: a mixture, a hidden Markov model, principal components.

    TABLE may be a folder of texts, a .txt file in each: folders in it are classes to tell apart. With `--model
    "language_model(ngram(7))"` a text file, a folder or a column of texts is learned as language.

    TABLE may be a folder of images: folders in it are classes to tell apart; with --masks each pixel has a class; with
    --boxes, a detector learns to find the objects in them.
    """
    given = {"likelihood": likelihood, "network": network, "prior": prior, "inference": inference, "tokens": tokens}
    parts = {name: text for name, text in given.items() if text is not None}
    of_targets = {"target": target, "weight": weight, "exposure": exposure, "offset": offset}
    others = {**of_targets, "model": model, "sequence": sequence, "text": text}
    of_tables = [name for name, value in others.items() if value is not None]
    if boxes is not None:
        if of_tables:
            raise SpecError(f"--{of_tables[0]} does not belong to --boxes, which says what there is in each image.")
        fit_boxes(table, boxes, parts, out, size=size, random_state=random_state, json=json)
        return
    if masks is not None or (table.is_dir() and model is None and is_images(table)):
        if of_tables:
            raise SpecError(f"--{of_tables[0]} does not belong to images, whose classes are folders or masks.")
        fit_images(table, masks, parts, out, size=size, random_state=random_state, json=json)
        return
    if size is not None:
        raise SpecError(f"--size {size!r} is of images, and {table} is not a folder of them.")
    if model is not None:
        beside = [*parts, *(name for name, value in of_targets.items() if value)]
        if beside:
            raise SpecError(f"--model {model!r} is a complete model, so --{beside[0]} cannot be given with it.")
        out = out or Path(f"{table.name.split('.')[0]}-{re.split('[^a-z_]', model.lower())[0]}.likely")
        check_out(out)
        made = make_model(model, random_state, verbose=not json)
        if type(made).__name__ == "LanguageModel":
            fit_language(table, made, out, text=text, json=json, reading=reading)
            return
        if text is not None or is_texts(table):
            raise SpecError(f"--model {model!r} is not of texts; those are language_model(…), or --target for a label.")
        options: dict[str, Any] = {"sequence": sequence, "ignore": ignore, "random_state": random_state}
        fit_rows(table, model, out, **options, json=json, reading=reading)
        return
    if target is None and table.is_dir():
        target, text = CLASS, text or TEXT
    if target is None:
        raise SpecError("Say what to learn: --target COLUMN, or --model for a model of the rows themselves.")
    if sequence is not None:
        raise SpecError(f"--sequence {sequence!r} belongs to --model; a model of a target takes rows one by one.")
    out = out or Path(f"{table.name.split('.')[0]}-{file_name(target)}.likely")
    check_out(out)
    rows, kept = (read_rows(table), {}) if is_texts(table) else read_kept(table, reading)
    if exposure is not None and task == "auto":
        task, why = "regress", "since --exposure is of counts and amounts; --task overrides"
    else:
        task, why = read_target(rows, target, task)
    beside = [name for name in (weight, exposure, offset) if name]
    text, because = text_column(rows, text, target, [*(ignore or ()), *beside])
    if exposure is not None and likelihood is None and task == "regress":
        parts["likelihood"] = family_with_exposure(rows, target)
    if tokens is not None and text is None:
        raise SpecError(f"--tokens {tokens!r} cuts texts; name the column that has them: --text COLUMN.")
    options = {"ignore": ignore, "category": category, "text": text, "offset": offset, "exposure": exposure}
    fitted = build_model(task, parts, target, **options, random_state=random_state, verbose=True)
    start = time.perf_counter()
    fitted.fit(rows, sample_weight=weight)
    seconds = time.perf_counter() - start
    known = with_target(rows, target)
    log_score = float(fitted.log_prob(known).mean())
    fitted.reading_ = kept
    fitted.save(out)
    family = family_of(fitted, known, target, given=likelihood is not None, exposure=exposure)
    result = {
        "model": str(out),
        "task": task,
        "family": family,
        "target": target,
        "rows": known.height,
        "features": list(fitted.table_.feature_names_),
        "constant": list(fitted.table_.constant_),
        "seconds": seconds,
        "training_log_score": log_score,
        "training_score": fitted.score(known),
    }
    if json:
        print_json(result)
        return
    measure = "accuracy" if task == "classify" else "R²"
    lines(
        {
            "table": f"{table}: {known.height} rows with a target; {fitted.table_.describe().splitlines()[0]}{because}",
            "target": f"{target}: {task}, {why}{_beside_words(exposure, offset)}",
            "model": in_words(fitted),
            "family": family,
        }
        | _constant_words(fitted.table_)
        | {
            "fit": f"{seconds:.2g} s; on the training rows the mean log score is {number(log_score)}, "
            f"the {measure} {number(result['training_score'])}",
            "saved": str(out),
            "next": f"likely predict {out} NEW_TABLE",
        }
    )


def _constant_words(table: Any) -> dict[str, str]:
    """The columns that cannot tell rows apart: the same in every row, or missing in every row."""
    empty = [column.name for column in getattr(table, "columns_", ()) if getattr(column, "value", "") is None]
    same = [name for name in table.constant_ if name not in empty]
    kinds = {"the same in every row": same, "missing in every row": empty}
    told = [f"{', '.join(names)}: {why}, so of no use" for why, names in kinds.items() if names]
    return {"constant": "; ".join(told)} if told else {}


def _beside_words(exposure: str | None, offset: str | None) -> str:
    """What the mean of the target is told beside the columns.

    >>> _beside_words("years", None)
    '; its mean is per unit of years'
    """
    told = f"; its mean is per unit of {exposure}" if exposure else ""
    return told + (f"; {offset} is added to η" if offset else "")
