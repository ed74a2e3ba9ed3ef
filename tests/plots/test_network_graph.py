import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from likely import BayesianNetwork
from likely.core.errors import DataError
from likely.plots.network_graph import network_graph
from likely.plots.style import ACCENT, percent

TABLES = {
    "rain": [0.8, 0.2],
    "sprinkler": [0.6, 0.4],
    "wet": [[[0.95, 0.05], [0.2, 0.8]], [[0.1, 0.9], [0.05, 0.95]]],
}
STATES = {name: ["no", "yes"] for name in TABLES}


def sprinkler():
    return BayesianNetwork.from_tables([("rain", "wet"), ("sprinkler", "wet")], TABLES, STATES)


def patches(ax, kind):
    return [patch for patch in ax.patches if type(patch) is kind]


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_a_box_for_each_variable_and_an_arrow_for_each_edge_downwards():
    ax = network_graph(sprinkler())
    assert (len(patches(ax, FancyBboxPatch)), len(patches(ax, FancyArrowPatch))) == (3, 2)
    for arrow in patches(ax, FancyArrowPatch):
        path = arrow._path_original.vertices
        assert path[0][1] > path[-1][1]
    assert ax.get_title(loc="left") == "3 variables, 2 edges"
    assert {"rain", "sprinkler", "wet"} <= set(words(ax))


def test_bars_are_as_long_as_the_probabilities():
    model = sprinkler()
    ax = network_graph(model, {"wet": "yes"})
    bars = patches(ax, Rectangle)
    whole, parts = bars[::2], bars[1::2]
    shares = [part.get_width() / full.get_width() for full, part in zip(whole, parts, strict=True)]
    expected = [p for probabilities in model.marginals({"wet": "yes"}).values() for p in probabilities.values()]
    assert shares == pytest.approx(expected)


def test_evidence_stands_out_and_the_title_tells_what_it_changed_most():
    model = sprinkler()
    ax = network_graph(model, {"wet": "yes"})
    marked = [box for box in patches(ax, FancyBboxPatch) if to_hex(box.get_edgecolor()).upper() == ACCENT]
    assert len(marked) == 1
    before, after = model.marginals(), model.marginals({"wet": "yes"})
    change = {name: abs(after[name]["yes"] - before[name]["yes"]) for name in ("rain", "sprinkler")}
    most = max(change, key=change.get)
    title = ax.get_title(loc="left").replace("\n", " ")
    was, now = percent(before[most]["yes"]), percent(after[most]["yes"])
    assert title == f"Given wet=yes: {most}=yes rises from {was} to {now}"
    soft = network_graph(model, soft={"wet": {"no": 1, "yes": 3}})
    assert soft.get_title(loc="left").startswith("Given soft wet: ")


def test_large_networks_tell_the_most_probable_state_alone():
    edges = [(f"v{place}", f"v{place + 1}") for place in range(24)]
    tables = {f"v{place}": [[0.3, 0.7], [0.6, 0.4]] if place else [0.3, 0.7] for place in range(25)}
    ax = network_graph(BayesianNetwork.from_tables(edges, tables))
    assert len(patches(ax, Rectangle)) == 2 * 25


def test_many_states_and_long_names_are_cut():
    model = BayesianNetwork.from_tables(
        ["colour"], {"colour": [0.1] * 10}, {"colour": [f"shade of grey {n}" for n in range(10)]}
    )
    ax = network_graph(model)
    assert len(patches(ax, Rectangle)) == 2 * 4
    assert "shade of …" in words(ax)


def test_an_unfitted_network_and_given_axes():
    _, ax = plt.subplots()
    assert network_graph(BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("a", "d")]), ax=ax) is ax
    assert not patches(ax, Rectangle)
    assert network_graph(sprinkler(), title="Mine", ax=ax).get_title(loc="left") == "Mine"


def test_impossible_evidence_is_refused():
    with pytest.raises(DataError, match="There is no variable 'snow'"):
        network_graph(sprinkler(), {"snow": "yes"})
