import itertools

import pytest
from matplotlib import pyplot as plt

from likely.plots.style import axes_of, finish, percent, side_labels


def test_given_axes_are_used():
    _, ax = plt.subplots()
    assert axes_of(ax) is ax
    assert axes_of(None) is not ax


def test_long_titles_are_wrapped_and_fit():
    ax = axes_of(None, 4.0, 3.0)
    finish(ax, title="word " * 30, note="note " * 30, x="x", y="y")
    figure = ax.figure
    figure.canvas.draw()
    for text in (ax.get_children()[i] for i in range(len(ax.get_children()))):
        if getattr(text, "get_text", lambda: "")().startswith(("word", "note")):
            assert text.get_window_extent().x1 <= figure.bbox.x1


def test_labels_do_not_meet():
    ax = axes_of(None, 4.0, 3.0)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    side_labels(ax, 1.0, {"first": (0.5, "k"), "second": (0.501, "k"), "third": (0.9, "k")})
    ax.figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 3 for low, high in itertools.pairwise(boxes))


@pytest.mark.parametrize(("value", "text"), [(0.9, "90%"), (0.123, "12.3%"), (1, "100%")])
def test_percent(value, text):
    assert percent(value) == text
