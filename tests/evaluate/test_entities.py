"""Entities of tagged sentences, counted whole; the cases are those of the conlleval script."""

from __future__ import annotations

import pytest

from likely.core.errors import DataError
from likely.evaluate import entities, entity_f1


@pytest.mark.parametrize(
    ("tags", "chunks"),
    [
        ("O O", []),
        ("B-a I-a O", [("a", 0, 2)]),
        ("B-a B-a", [("a", 0, 1), ("a", 1, 2)]),
        ("B-a I-b I-b", [("a", 0, 1), ("b", 1, 3)]),  # another type is another entity
        ("I-a I-a O I-a", [("a", 0, 2), ("a", 3, 4)]),  # what continues nothing begins
        ("S-a S-a", [("a", 0, 1), ("a", 1, 2)]),
        ("B-a I-a E-a I-a", [("a", 0, 3), ("a", 3, 4)]),  # what has ended does not go on
        ("B-creative-work I-creative-work", [("creative-work", 0, 2)]),
    ],
)
def test_where_entities_begin_and_end(tags, chunks):
    assert entities(tags.split()) == chunks


def test_f1_counts_whole_entities_of_all_sentences():
    true = [["B-a", "I-a", "O"], ["B-b", "O", "B-a"]]
    assert entity_f1(true, true) == 1.0
    assert entity_f1(true, [["B-a", "O", "O"], ["B-b", "O", "B-b"]]) == pytest.approx(2 / 6)  # 1 of 3 found, of 3
    assert entity_f1(true, [["O", "O", "O"], ["B-b", "O", "O"]]) == pytest.approx(2 / 4)  # precision 1, recall 1/3
    assert entity_f1(true, [["O", "O", "O"], ["O", "O", "O"]]) == 0.0
    assert entity_f1([["O"]], [["O"]]) == 0.0


def test_what_is_not_a_tag_is_named():
    for tag in ("person", "X-person", "B-", "O-person"):
        with pytest.raises(DataError, match=f"tag '{tag}' is not O"):
            entities([tag])
    with pytest.raises(DataError, match="y_true has 1 sentences and y_pred 2"):
        entity_f1([["O"]], [["O"], ["O"]])
    with pytest.raises(DataError, match="sentence 0 has 1 tags in y_true and 2 in y_pred"):
        entity_f1([["O"]], [["O", "O"]])
