import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import DataError
from likely.networks import MLP
from likely.plots.regions import breakpoints, regions
from likely.theory.linear_regions import regions_in_plane, regions_on_line


def network(hidden, inputs, outputs=1):
    torch.manual_seed(0)
    return MLP(hidden).build((inputs,), outputs).double()


def drawn(ax):
    return {artist.get_label(): artist for artist in ax.collections}


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def test_every_polygon_is_drawn_and_the_level_line_is_at_the_level():
    net = network((6, 5), 2)
    plane = regions_in_plane(net, ((-3, 3), (-2, 2)))
    corners = net(torch.as_tensor(np.concatenate(plane.polygons)))[:, 0].detach()
    level = float(corners.min() + corners.max()) / 2  # a value that the network takes in this window
    ax = regions(plane, level=level)
    parts = drawn(ax)
    assert len(parts["regions"].get_paths()) == len(plane.polygons)
    line = np.concatenate([path.vertices for path in parts["level"].get_paths()])
    assert len(line)
    np.testing.assert_allclose(net(torch.as_tensor(line))[:, 0].detach().numpy(), level, atol=1e-9)
    assert title(ax) == f"{len(plane)} linear regions"
    assert (ax.get_xlim(), ax.get_ylim()) == ((-3, 3), (-2, 2))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x₀", "x₁")


def test_polygons_of_one_region_have_one_tint_and_no_border_between_them():
    net = network((4, 3), 2)
    with torch.no_grad():
        net[2].bias.fill_(-1e6)
    plane = regions_in_plane(net, ((-1, 1), (-1, 1)))
    ax = regions(plane)
    parts = drawn(ax)
    assert title(ax) == "1 linear region"
    assert len(np.unique(parts["regions"].get_facecolor(), axis=0)) == 1
    sides = np.array([path.vertices for path in parts["borders"].get_paths()])
    assert (np.isclose(np.abs(sides), 1).all(1).any(1)).all()  # what is left lies on the edge of the window


def test_several_outputs_have_no_level_line():
    ax = regions(regions_in_plane(network((4,), 2, outputs=3)), names=("age", "income"))
    assert "level" not in drawn(ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "income")


def test_breakpoints_lie_on_the_function():
    net = network((7, 7), 1, outputs=2)
    line = regions_on_line(net, -4.0, 4.0)
    ax = breakpoints(line, names=["a", "b"])
    lines = {line.get_label(): line for line in ax.get_lines()}
    x = lines["a"].get_xdata()
    np.testing.assert_allclose(x[1:-1], line.points[:, 0])
    answers = net(torch.as_tensor(x)[:, None]).detach().numpy()
    np.testing.assert_allclose(lines["a"].get_ydata(), answers[:, 0], atol=1e-9)
    np.testing.assert_allclose(lines["b"].get_ydata(), answers[:, 1], atol=1e-9)
    assert title(ax) == f"{len(line)} linear regions with {len(line) - 1} breakpoints"
    assert {text.get_text() for text in ax.texts} == {"a", "b"}
    assert ax.get_xlabel() == "x"


def test_lines_in_space_are_drawn_over_the_share_of_the_way():
    ax = breakpoints(regions_on_line(nn.Linear(3, 1), np.zeros(3), np.ones(3)))
    assert title(ax) == "1 linear region"
    assert ax.get_xlabel() == "fraction of the way"


def test_errors():
    line = regions_on_line(network((3,), 1), -1.0, 1.0)
    with pytest.raises(DataError, match=r"regions draws what theory.regions_in_plane returns; found a LineRegions"):
        regions(line)
    with pytest.raises(DataError, match=r"breakpoints draws what theory.regions_on_line returns; found a dict"):
        breakpoints({})
    with pytest.raises(DataError, match="names must be one for each of the 1 outputs; found 2"):
        breakpoints(line, names=["a", "b"])
