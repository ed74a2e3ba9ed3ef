"""Entities in tagged sentences, and how many of them a tagger finds: whole, or not at all.

    F1 = 2 · |found ∩ true| / (|found| + |true|),      an entity being its type, its first and its last word

Tags are O outside of entities, and B-type (or S-type) at the first word of one, I-type (or E-type) at the others. As in
the conlleval script, an I- that continues nothing begins an entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.errors import DataError

__all__ = ["entities", "entity_f1"]


def entities(tags: Iterable[str]) -> list[tuple[str, int, int]]:
    """(type, start, stop) of each entity in the tags of a sentence: its words are start, …, stop − 1.

    >>> entities(["B-person", "I-person", "O", "I-place", "B-place"])
    [('person', 0, 2), ('place', 3, 4), ('place', 4, 5)]
    """
    chunks: list[tuple[str, int, int]] = []
    before, kind = "O", ""
    for place, tag in enumerate(tags):
        prefix, _, own = str(tag).partition("-")
        if prefix not in ("O", "B", "I", "E", "S") or (prefix == "O") != (own == ""):
            raise DataError(f"tag {tag!r} is not O, or B-, I-, E- or S- and the type of an entity.")
        begins = prefix in ("B", "S") or before in ("O", "E", "S") or own != kind
        if prefix != "O" and begins:
            chunks.append((own, place, place + 1))
        elif prefix != "O":
            chunks[-1] = (own, chunks[-1][1], place + 1)
        before, kind = prefix, own
    return chunks


def entity_f1(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
    """The F1 of entities over all sentences, which seqeval and conlleval report; 0 where no entity is right.

    >>> entity_f1([["B-person", "I-person", "O", "B-place"]], [["B-person", "I-person", "O", "O"]])
    0.6666666666666666
    """
    if len(y_true) != len(y_pred):
        raise DataError(f"y_true has {len(y_true)} sentences and y_pred {len(y_pred)}; both need the same.")
    right = total = 0
    for sentence, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(true) != len(predicted):
            raise DataError(f"sentence {sentence} has {len(true)} tags in y_true and {len(predicted)} in y_pred.")
        ours, theirs = set(entities(predicted)), set(entities(true))
        right += len(ours & theirs)
        total += len(ours) + len(theirs)
    return 2 * right / total if total else 0.0
