import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def settings_stay_and_figures_close():
    """No picture changes matplotlib's settings, and none is left open."""
    from matplotlib import pyplot as plt

    before = dict(matplotlib.rcParams)
    yield
    after = dict(matplotlib.rcParams)
    plt.close("all")
    assert after == before


@pytest.fixture
def under():
    """under(ax, words, places): of each label with one of the words, how many of the places its text covers."""
    from matplotlib.text import Text

    def count(ax, words, places):
        ax.figure.draw_without_rendering()
        labels = [text for text in ax.texts if text.get_text() in words]
        boxes = [Text.get_window_extent(text).extents for text in labels]  # of the words, without a line to them
        pixels = ax.transData.transform(np.asarray(places))
        return [int(((pixels > box[:2]) & (pixels < box[2:])).all(1).sum()) for box in boxes]

    return count
