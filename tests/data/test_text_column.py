from __future__ import annotations

import pandas as pd
import pytest

import likely
from likely import Classifier, TableModel
from likely.core.errors import DataError, SpecError
from likely.data import TextColumn

REVIEWS = ["so warm", "a warm film", "so dull", "a dull film"]
ROWS = {"review": REVIEWS, "stars": [5, 4, 1, 2], "like": ["y", "y", "n", "n"]}


def test_a_model_of_a_column_of_texts_is_that_of_its_strings(tmp_path):
    model = TableModel(Classifier(), "like", TextColumn("review")).fit(ROWS)
    alone = Classifier().fit(ROWS["review"], ROWS["like"])
    assert (model.predict_proba(ROWS) == alone.predict_proba(ROWS["review"])).all()
    assert model.score(pd.DataFrame(ROWS)) == 1.0
    model.save(tmp_path / "m")
    assert (likely.load(tmp_path / "m").predict_proba(ROWS) == model.predict_proba(ROWS)).all()


def test_what_is_no_column_of_texts_is_named():
    with pytest.raises(DataError, match="Column 'stars' has values of the type Int64; texts are needed"):
        TextColumn("stars").fit(ROWS)
    with pytest.raises(DataError, match=r"The table has no column 'reviews'. Did you mean 'review'\?"):
        TextColumn("reviews").fit(ROWS)
    with pytest.raises(SpecError, match=r"TextColumn\(text=3\): text must be the name of a column"):
        TextColumn(3).fit(ROWS)
