import numpy as np
import pytest

from likely.core.errors import DataError
from likely.plots.gradients import gradients, shattering
from likely.theory.gradient_health import Autocorrelation, GradientHealth, LayerHealth


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def curves(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def report(factor, layers=6, dead=(), shattered=None):
    """Gradients that grow by a factor a layer on the way back, activations that stay."""
    sizes = [factor ** (layers - 1 - place) for place in range(layers)]
    return GradientHealth(
        tuple(
            LayerHealth(str(place), 8, 1.0, size, size, 1.0 if place in dead else 0.0)
            for place, size in enumerate(sizes)
        ),
        shattered,
    )


@pytest.mark.parametrize(
    ("factor", "finding"),
    [(1.0, "Gradients stay level: a factor of 1 a"), (0.1, "Gradients vanish: a"), (10.0, "Gradients explode: a")],
)
def test_norms_by_layer_and_the_finding(factor, finding):
    ax = gradients(report(factor))
    line = curves(ax)["gradient"]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(line.get_ydata(), factor ** np.arange(5.0, -1, -1))
    assert title(ax).startswith(finding)
    assert ax.get_yscale() == "log"
    (below,) = ax.child_axes
    np.testing.assert_array_equal(curves(below)["activation"].get_ydata(), np.ones(6))
    assert below.get_xlabel() == "layer, from the input"


def test_several_reports_are_named():
    ax = gradients({"small": report(0.1), "He": report(1.0), "large": report(10.0)})
    assert title(ax) == "Gradients stay level in He, vanish in small, explode in large"
    assert {text.get_text() for text in ax.child_axes[0].texts} == {"small", "He", "large"}


def test_dead_layers_have_rings():
    ax = gradients(report(1.0, dead=(2,)))
    np.testing.assert_array_equal(curves(ax)["dead"].get_xdata(), [3])
    assert "rings: half or more of the units are dead" in [text.get_text() for text in ax.texts]
    assert "dead" not in curves(gradients(report(1.0)))


def test_gradients_of_0_are_left_out():
    ax = gradients(report(0.0))
    assert np.isnan(curves(ax)["gradient"].get_ydata()[:-1]).all()
    assert title(ax) == "Gradients vanish: a factor of 0 a layer on the way back"


def test_autocorrelation_over_distance():
    lags = np.linspace(0, 0.5, 6)
    slow, fast = Autocorrelation(lags, 1 - 0.5 * lags), Autocorrelation(lags, np.exp(-9 * lags))
    ax = shattering({"shallow": slow, "deep": report(1.0, shattered=fast)})
    drawn = curves(ax)
    np.testing.assert_array_equal(drawn["deep"].get_ydata(), fast.values)
    np.testing.assert_array_equal(drawn["shallow"].get_xdata(), lags)
    assert title(ax) == "Gradients are most alike in shallow, least in deep"
    assert title(shattering(fast)) == "The likeness of gradients falls below ½ within 10% of the line"
    assert title(shattering(slow)) == "The likeness of gradients falls below ½ nowhere on it"


def test_errors():
    with pytest.raises(DataError, match=r"gradients draws what theory.gradient_health returns, .* found a str"):
        gradients("net")
    with pytest.raises(DataError, match="or a dict of them by name; found an empty one"):
        gradients({})
    with pytest.raises(DataError, match="deep has no autocorrelation"):
        shattering({"deep": report(1.0)})
