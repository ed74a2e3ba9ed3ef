import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

from likely.plots.labels import Label, place_labels


def boxes(ax, words):
    """Where these words are drawn, in pixels."""
    ax.figure.draw_without_rendering()
    labels = [text for text in ax.texts if text.get_text() in words]
    return [Text.get_window_extent(text).extents for text in labels]


def test_a_label_covers_no_point_and_no_other_label_where_there_is_room(under):
    ax = Figure(figsize=(5, 4), layout="constrained").subplots()
    points = np.random.default_rng(0).normal(size=(200, 2)) * 0.1
    ax.scatter(*points.T)
    ax.set(xlim=(-1, 1), ylim=(-1, 1))
    labels = [Label(name, np.zeros((1, 2)), np.array([[1.0, 0.0]]), "black") for name in ("one", "two")]
    place_labels(ax, labels, points)
    first, second = boxes(ax, {"one", "two"})
    assert under(ax, {"one", "two"}, points) == [0, 0]
    assert not ((first[:2] < second[2:]).all() and (second[:2] < first[2:]).all())


def test_a_label_in_an_empty_picture_stays_in_the_direction_asked_for():
    ax = Figure().subplots()
    place_labels(ax, [Label("up", np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]), "black")], [])
    (box,) = boxes(ax, {"up"})
    anchor = ax.transData.transform((0.5, 0.5))
    assert anchor[1] < box[1] < anchor[1] + 20
    assert box[0] < anchor[0] < box[2]
    assert not ax.texts[0].arrow_patch.get_visible()


def test_a_label_far_from_what_it_names_has_a_line_to_it(under):
    ax = Figure().subplots()
    points = np.stack(np.meshgrid(*[np.linspace(0.35, 0.65, 40)] * 2), -1).reshape(-1, 2)
    place_labels(ax, [Label("far", np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]), "black")], points)
    assert under(ax, {"far"}, points) == [0]
    assert ax.texts[0].arrow_patch.get_visible()
