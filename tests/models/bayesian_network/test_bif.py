import numpy as np
import pytest

from likely.core.errors import DataError
from likely.models.bayesian_network.bif import read_bif, write_bif
from likely.models.bayesian_network.dag import Dag

SOUND = """network "dog problem" { property "version 0.1"; }
// causes
variable family-out { type discrete [ 2 ] { true, false }; property "position = (1, 2)"; }
variable light-on { type discrete[2] { on, off }; }
/* a table lists
   the states of the variable itself slowest */
probability ( family-out ) { table 0.15, 0.85; }
probability ( light-on | family-out ) {
  table 0.6, 0.05, 0.4, 0.95;
}
"""


def written(tmp_path, text):
    path = tmp_path / "net.bif"
    path.write_text(text, encoding="utf-8")
    return path


def test_tables_comments_and_properties_are_read(tmp_path):
    edges, states, tables = read_bif(written(tmp_path, SOUND))
    assert edges == ["family-out", "light-on", ("family-out", "light-on")]
    assert states == {"family-out": ["true", "false"], "light-on": ["on", "off"]}
    assert tables[1].tolist() == [[0.6, 0.4], [0.05, 0.95]]


def test_default_rows_fill_what_is_not_given(tmp_path):
    text = SOUND.replace("table 0.6, 0.05, 0.4, 0.95;", "default 0.5, 0.5; (false) 0.1, 0.9;")
    assert read_bif(written(tmp_path, text))[2][1].tolist() == [[0.5, 0.5], [0.1, 0.9]]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, network, seed):
    network_tables, vector = network(seed, 8)
    dag = network_tables.dag
    states = [[f"s{number}" for number in range(size)] for size in network_tables.sizes]
    given = network_tables.split(vector)
    write_bif(tmp_path / "net.bif", dag, states, given)
    edges, states_read, tables = read_bif(tmp_path / "net.bif")
    assert Dag.from_edges(edges) == dag
    assert list(states_read.values()) == states
    for first, second in zip(given, tables, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.85;", "0.75;", r"net\.bif, line 7: p\(family-out\) sums to 0\.9, not to 1"),
        ("0.85;", "0.85, 0.1;", r"line 7: the table of 'family-out' has 3 numbers, it needs 2"),
        ("0.85;", "x;", r"line 7: expected a probability, found 'x'"),
        ("0.85;", "1.85;", r"line 7: 1\.85 is not a probability"),
        ("0.85;", "nan;", r"line 7: nan is not a probability"),
        (
            "| family-out",
            "| family-oot",
            r"line 8: no variable 'family-oot' was declared before\. Did you mean 'family-o",
        ),
        ("[ 2 ]", "[ 3 ]", r"line 3: 'family-out' should have \[ 3 \] states but lists 2"),
        ("{ on, off }", "{ on, on }", r"line 4: 'on' is there twice in the states of 'light-on'"),
        ("variable light-on", "variable family-out", r"line 4: variable 'family-out' is declared twice"),
        ("type discrete[2]", "type continuous[2]", r"line 4: expected 'discrete', found 'continuous'"),
        ("table 0.6, 0.05, 0.4, 0.95;\n}", "table 0.6, 0.05", r"line 10: expected ';', but the file ends"),
        (
            "table 0.6, 0.05, 0.4, 0.95;",
            "(true) 0.5, 0.5;",
            r"line 8: there are no numbers for p\(light-on \| family-out=fa",
        ),
        (
            "table 0.6, 0.05, 0.4, 0.95;",
            "(tru) 0.5, 0.5;",
            r"line 9: 'tru' is not a state of 'family-out'\. Did you mean 'true",
        ),
        (
            "table 0.6, 0.05, 0.4, 0.95;",
            "(true, on) 1, 0;",
            r"line 9: a row of 'light-on' names more than its 1 parents",
        ),
        ("table 0.6, 0.05, 0.4, 0.95;", "() 1, 0;", r"line 9: a row of 'light-on' names 0 of its 1 parents"),
        (
            "table 0.6, 0.05, 0.4, 0.95;",
            "(true) 1, 0; (true) 1, 0;",
            r"line 9: the row \(true\) of 'light-on' is there twice",
        ),
        ("table 0.6, 0.05, 0.4, 0.95;", "(true) 0.5, 0.4;", r"line 9: the row \(true\) of 'light-on' sums to 0\.9"),
        ("table 0.6, 0.05, 0.4, 0.95;", "tabel 1;", r"line 9: 'tabel' is not known here"),
        ("probability ( family-out ) { table 0.15, 0.85; }", "", r"line 11: variable 'family-out' has no probability"),
        ("( light-on | family-out )", "( light-on | light-on )", r"line 8: a probability needs different variables"),
        ("( light-on | family-out )", "( family-out )", r"line 8: 'family-out' has a second probability block"),
        (
            "probability ( family-out ) {",
            "probability ( family-out | light-on ) { (on) 1, 0; (off) 1, 0; } x {",
            "line 7",
        ),
        ("// causes", "causes", r"line 2: expected 'network', 'variable' or 'probability', found 'causes'"),
        ("type discrete[2] { on, off };", "", r"line 4: variable 'light-on' has no states"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path, old, new, message):
    assert old in SOUND
    with pytest.raises(DataError, match=message):
        read_bif(written(tmp_path, SOUND.replace(old, new, 1)))


def test_a_cycle_in_a_file_and_files_that_are_none(tmp_path):
    text = SOUND.replace("( family-out ) { table 0.15, 0.85; }", "( family-out | light-on ) { default 0.5, 0.5; }")
    with pytest.raises(DataError, match=r"net\.bif: edges hold a cycle: .*light-on → family-out"):
        read_bif(written(tmp_path, text))
    with pytest.raises(DataError, match="there is no variable"):
        read_bif(written(tmp_path, ""))
    with pytest.raises(DataError, match=r"Cannot read .*nothing"):
        read_bif(tmp_path / "nothing.bif")


def test_names_that_a_file_cannot_hold_are_refused(tmp_path):
    with pytest.raises(DataError, match="BIF cannot hold the name 'light on'"):
        write_bif(tmp_path / "net.bif", Dag.from_edges(["light on"]), [["a", "b"]], [np.array([0.5, 0.5])])
    assert not (tmp_path / "net.bif").exists()
    with pytest.raises(DataError, match=r"Cannot write .*: No such file or directory"):
        write_bif(tmp_path / "no" / "net.bif", Dag.from_edges(["light"]), [["a", "b"]], [np.array([0.5, 0.5])])
