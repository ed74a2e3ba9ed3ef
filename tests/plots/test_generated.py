"""Pictures of generated rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely import PCA
from likely.core.errors import DataError
from likely.plots import image_grid, latent_map, pairs, trajectory

RNG = np.random.default_rng(0)


def test_every_image_is_where_it_belongs():
    images = np.arange(5.0)[:, None, None, None] * np.ones((5, 1, 3, 4))
    canvas = image_grid(images, columns=2).get_images()[0].get_array()
    assert canvas.shape == (3 * 4 - 1, 2 * 5 - 1)
    for index in range(5):
        top, left = index // 2 * 4, index % 2 * 5
        assert (canvas[top : top + 3, left : left + 4] == index).all()


def test_colours_are_scaled_to_one_range():
    canvas = image_grid(RNG.normal(size=(4, 3, 2, 2))).get_images()[0].get_array()
    assert canvas.shape[2] == 3
    assert 0 <= canvas.min() <= canvas.max() <= 1


def test_real_and_generated_rows_are_drawn_in_two_colours():
    table = pl.DataFrame({"a": RNG.normal(size=30), "b": RNG.normal(size=30)})
    ax = pairs(table, table[:10])
    assert [len(cloud.get_offsets()) for cloud in ax.collections] == [30, 10]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert len({tuple(cloud.get_facecolor()[0]) for cloud in ax.collections}) == 2


def test_codes_have_the_colours_of_their_labels():
    X = RNG.normal(size=(30, 4))
    model = PCA(2).fit(X)
    ax = latent_map(model, X, np.arange(30) % 3)
    assert [len(cloud.get_offsets()) for cloud in ax.collections] == [10, 10, 10]
    np.testing.assert_allclose(ax.collections[0].get_offsets(), model.transform(X)[::3])
    assert len(latent_map(PCA(1).fit(X), X).collections) == 1


def test_more_labels_than_colours_are_told_apart():
    X = RNG.normal(size=(48, 4))
    ax = latent_map(PCA(2).fit(X), X, np.arange(48) % 12)
    looks = {(tuple(cloud.get_facecolor()[0]), cloud.get_paths()[0].vertices.tobytes()) for cloud in ax.collections}
    assert len(looks) == 12
    assert [mark.get_alpha() for mark in ax.get_legend().legend_handles] == [1.0] * 12


def test_ways_begin_and_end_at_the_first_and_last_state():
    ways = RNG.normal(size=(7, 5, 2)).cumsum(0)
    ax = trajectory(ways)
    assert len(ax.lines) == 5
    np.testing.assert_allclose(ax.collections[0].get_offsets(), ways[0])
    np.testing.assert_allclose(ax.collections[1].get_offsets(), ways[-1])
    assert ax.get_title(loc="left") == "From noise to rows"
    other = trajectory(ways, ends=("rows", "noise"), names=("a", "b"))
    assert [text.get_text() for text in other.get_legend().get_texts()] == ["rows", "noise"]
    assert (other.get_title(loc="left"), other.get_xlabel()) == ("From rows to noise", "a")


def test_many_long_ways_are_drawn_fainter():
    few, many = (trajectory(RNG.normal(size=(steps, 20, 2))).lines[0].get_alpha() for steps in (2, 200))
    assert 0 < many < few


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(DataError, match=r"images have shape \(2, 2\)"):
        image_grid(np.zeros((2, 2)))
    with pytest.raises(DataError, match=r"two columns of 2; columns=\(0, 5\)"):
        pairs(np.zeros((3, 2)), np.zeros((3, 2)), columns=(0, 5))
    with pytest.raises(DataError, match="labels has 2 entries, but X has 30 rows"):
        latent_map(PCA(2).fit(RNG.normal(size=(30, 3))), RNG.normal(size=(30, 3)), [0, 1])
    with pytest.raises(DataError, match="states have shape"):
        trajectory(np.zeros((3, 2, 1)))
