"""`make demo`: a stranger's first minute."""

from __future__ import annotations

import numpy as np

from likely import load
from likely.cli import demo as module
from likely.data import read_table


def test_it_leaves_a_table_a_model_predictions_and_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "candidates", lambda *_: {"linear": {}, "ridge": {"prior": "normal(scale=20.0)"}})
    module.demo(tmp_path)
    rows = read_table(tmp_path / "predictions.csv")
    assert rows.height == 100
    inside = (rows["progression_lower"] <= rows["progression"]) & (rows["progression"] <= rows["progression_upper"])
    # 100 rows at 90 %: fewer than 78 inside has probability 1.4e-4 if the intervals are right
    assert inside.sum() >= 78
    np.testing.assert_allclose(load(tmp_path / "model.likely").predict(rows), rows["progression_predicted"], rtol=1e-5)
    assert (tmp_path / "predictions.png").read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    for command in ("compare", "fit", "predict", "evaluate"):
        assert f"$ likely {command} " in out


def test_training_and_held_out_rows_are_the_whole_table(tmp_path):
    rows = module._diabetes()
    assert rows.height == 442
    assert rows.n_unique() == 442
