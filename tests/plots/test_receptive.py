import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from likely.core.errors import SpecError
from likely.networks import ConvNet, ResNet
from likely.plots.receptive import receptive
from likely.theory.receptive_field import receptive_field, receptive_gradient, receptive_span

NETWORK = ConvNet((4, 6))


def frames(ax):
    return {p.get_label(): p.get_bbox() for p in ax.patches if isinstance(p, Rectangle) and p.get_label().isdigit()}


def test_the_shade_is_the_gradient_and_the_frames_are_the_fields():
    ax = receptive(NETWORK, (1, 28, 28), rows=64)
    seen = receptive_gradient(NETWORK, (1, 28, 28), rows=64).numpy()
    np.testing.assert_allclose(ax.images[0].get_array(), np.sqrt(seen / seen.max()), rtol=1e-6)
    drawn = frames(ax)
    sizes = [field.size[0] for field in receptive_field(NETWORK, (1, 28, 28))]
    assert [drawn[str(number)].width for number in (1, 2, 4, 5)] == [sizes[i] for i in (0, 1, 3, 4)] == [3, 4, 8, 10]
    span = receptive_span(NETWORK, (1, 28, 28))[0]
    assert drawn["5"].intervalx.tolist() == drawn["5"].intervaly.tolist() == [span.start - 0.5, span.stop - 0.5]
    assert ax.get_title(loc="left") == "A unit sees 10 × 10 of 28 × 28 pixels"
    assert "layer 4 (Conv): 8 × 8" in [text.get_text() for text in ax.texts]


def test_frames_at_the_edge_stay_in_the_image():
    ax = receptive(ResNet((4,), blocks=2), (1, 12, 20), position=(0, 19), rows=8)
    for box in frames(ax).values():
        assert -0.5 <= box.x0 < box.x1 <= 19.5
        assert -0.5 <= box.y0 < box.y1 <= 11.5
    assert ax.get_title(loc="left") == "A unit sees 6 × 6 of 12 × 20 pixels"


def test_series_have_bars_below_the_curve():
    _, ax = plt.subplots()
    assert receptive(ConvNet((4, 4), downsample=None), (1, 30), rows=8, ax=ax, title="own") is ax
    bars = {line.get_label(): line.get_xdata().tolist() for line in ax.get_lines()}
    assert bars == {"1": [13.5, 16.5], "3": [12.5, 17.5]}
    assert ax.get_title(loc="left") == "own"


def test_what_has_no_field_is_refused():
    with pytest.raises(SpecError, match="does not start with a convolution"):
        receptive("mlp(hidden=[4])", (10,))
