"""Mixed tables: every model that takes them gives back tables of the same columns, types and labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import likely
from likely import GAN, VAE, Autoregressive, Diffusion, Flow, ScoreModel
from likely.core.errors import DataError
from likely.inference import MAP
from likely.networks import MLP

TINY = {"inference": MAP(epochs=3), "random_state": 0}
MODELS = {
    "Autoregressive": Autoregressive(network=MLP((8,)), **TINY),
    "Diffusion": Diffusion(MLP((8,)), steps=10, sampler="ddpm(5)", **TINY),
    "Flow": Flow("affine", layers=1, network=MLP((4,)), **TINY),
    "GAN": GAN(MLP((4,)), MLP((4,)), latent=2, **TINY),
    "VAE": VAE(latent=2, encoder=MLP((4,)), decoder=MLP((4,)), **TINY),
}
EACH = pytest.mark.parametrize("name", MODELS)
FILLS = pytest.mark.parametrize("name", [name for name in MODELS if name != "GAN"])


def mixed(rows=40):
    """Numbers, counts, labels in text and as categories, booleans."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=rows)
    kind = np.array(["low", "middle", "high"])[np.digitize(size, [-0.5, 0.5])]
    return pl.DataFrame(
        {
            "kind": kind,
            "size": size,
            "count": rng.poisson(3.0, rows),
            "yes": rng.random(rows) < 0.5,
            "group": pl.Series(rng.choice(["a", "b"], rows)).cast(pl.Categorical),
            "short": pl.Series(rng.integers(0, 200, rows)).cast(pl.UInt8),
        }
    )


TABLE = mixed()
FITTED: dict[str, object] = {}


def fitted(name):
    if name not in FITTED:
        FITTED[name] = MODELS[name].fit(TABLE)
    return FITTED[name]


@EACH
def test_new_rows_have_the_columns_the_types_and_the_labels_of_the_table(name, tmp_path):
    model = fitted(name)
    new = model.sample(30, random_state=0)
    assert new.schema == TABLE.schema
    assert new.null_count().sum_horizontal().item() == 0
    assert set(new["kind"]) <= {"low", "middle", "high"}
    assert set(new["group"]) <= {"a", "b"}
    assert new.equals(model.sample(30, random_state=0))
    model.save(tmp_path / "model.likely")
    assert likely.load(tmp_path / "model.likely").sample(30, random_state=0).equals(new)


@EACH
def test_a_frame_of_pandas_comes_back_as_one(name):
    columns = {column: TABLE[column].to_list() for column in TABLE.columns}
    frame = pd.DataFrame(columns).astype({"group": "category", "short": "uint8"})
    model = likely.models.FrameModel(MODELS[name]).fit(frame)
    new = model.sample(5, random_state=0)
    assert isinstance(new, pd.DataFrame)
    assert new.columns.tolist() == frame.columns.tolist()
    assert new.dtypes.tolist() == [
        pd.CategoricalDtype(["a", "b"]) if column == "group" else kind for column, kind in frame.dtypes.items()
    ]


@FILLS
def test_some_columns_can_be_held(name):
    new = fitted(name).sample(6, condition={"kind": "low", "count": 4}, random_state=0)
    assert new.schema == TABLE.schema
    assert new["kind"].to_list() == ["low"] * 6
    assert new["count"].to_list() == [4] * 6
    several = fitted(name).sample(2, condition={"kind": ["low", "high"]}, random_state=0)
    assert several["kind"].to_list() == ["low", "high"]


def test_a_gan_says_who_can_hold_columns():
    with pytest.raises(DataError, match=r"GAN cannot hold some columns .* or use Autoregressive, Flow, VAE or Diff"):
        fitted("GAN").sample(2, condition={"kind": "low"})


@FILLS
def test_gaps_are_filled_by_means_or_draws_and_the_rest_stays(name):
    gone = np.arange(len(TABLE)) % 4 == 0
    holes = TABLE.with_columns(
        pl.when(pl.Series(gone)).then(None).otherwise(pl.col(column)).alias(column) for column in ("kind", "count")
    )
    mean = fitted(name).impute(holes)
    assert mean.drop("count").schema == TABLE.drop("count").schema
    assert mean["count"].dtype == pl.Float64  # a mean is no count
    several = fitted(name).impute(holes, draws=2, random_state=0)
    for table in (mean, *several):
        assert table.null_count().sum_horizontal().item() == 0
        assert table.filter(~pl.Series(gone)).cast(TABLE.schema).equals(TABLE.filter(~pl.Series(gone)))
        assert table["size"].equals(TABLE["size"])
    assert [table.schema for table in several] == [TABLE.schema] * 2
    assert fitted(name).impute(TABLE).schema == TABLE.schema


def test_the_type_of_a_column_does_not_depend_on_the_draw():
    """Values of a float column that happen to be integers stay floats, and those of an integer column are rounded."""
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "n": [1, 2, 3, 4] * 5})
    model = Autoregressive(network=MLP((4,)), **TINY).fit(frame)
    for seed in range(3):
        assert model.sample(2, random_state=seed).schema == frame.schema


def test_a_score_model_says_who_takes_text():
    with pytest.raises(DataError, match=r"Column 'kind' is text.*; Autoregressive, Flow, VAE, Diffusion and GAN take"):
        ScoreModel(MLP((4,)), **TINY).fit(TABLE)
