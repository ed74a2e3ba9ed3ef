import numpy as np
import pytest

from likely.core.errors import DataError
from likely.plots.convergences import convergence
from likely.theory.convergence import Convergence, quadratic_convergence


def test_measured_curves_and_bounds():
    curves = {name: quadratic_convergence([1.0, 20.0], method=name, steps=30) for name in ("gradient", "momentum")}
    ax = convergence(curves)
    drawn = {line.get_label(): line for line in ax.get_lines()}
    for name, curve in curves.items():
        np.testing.assert_array_equal(drawn[name].get_ydata(), curve.measured)
    dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert len(dashed) == 2
    np.testing.assert_array_equal(dashed[1].get_ydata(), curves["momentum"].bound)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    assert ax.get_ylabel() == "distance to the minimum"
    assert {"gradient", "momentum"} <= {text.get_text() for text in ax.texts}


def test_powers_leave_out_step_zero():
    ax = convergence(quadratic_convergence([1.0, 2.0], steps=10), powers=True)
    assert ax.get_xscale() == "log"
    assert ax.get_lines()[0].get_xdata()[0] == 1


def test_a_broken_bound_is_said():
    broken = Convergence("gradient", "loss", np.array([1.0, 0.9]), np.array([1.0, 0.5]))
    assert convergence(broken).get_title(loc="left") == "Above the bound: gradient"


def test_what_cannot_be_drawn_together():
    one = quadratic_convergence([1.0, 2.0], steps=3)
    other = Convergence("sgd", "loss above its minimum", one.measured, one.bound)
    with pytest.raises(DataError, match="curves measure different things"):
        convergence({"a": one, "b": other})
    with pytest.raises(DataError, match="between 1 and 5"):
        convergence({})
