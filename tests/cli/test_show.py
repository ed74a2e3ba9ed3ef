"""`likely show`: what is in a model file."""

from __future__ import annotations

import pytest

from likely import load


def test_it_names_columns_parameters_and_coefficients(run, regressor):
    out = run("show", regressor).out
    for word in ("spend", "days since 2022-01-01", "constant", "network.weight", "city=Oslo", "written by Likely"):
        assert word in out


def test_coefficients_are_those_of_the_model(run, classifier):
    said = run("show", classifier, "--json").json()
    model = load(classifier)
    weight = model.model_.posterior_.parameters["network.weight"][0, 0]
    assert said["classes"] == ["buys", "leaves"]
    assert list(said["coefficients"]) == model.table_.feature_names_
    assert [value for (value,) in said["coefficients"].values()] == pytest.approx(weight.tolist())
    assert said["parameters"]["network.weight"] == [1, len(weight)]


def test_a_network_has_no_coefficients(run, shop):
    options = ["--network", "mlp(hidden=[3])", "--inference", "ensemble(members=2, by=map(epochs=2))"]
    assert run("fit", shop, "-t", "spend", "--ignore", "id", *options, "--out", "net").code == 0
    said = run("show", "net", "--json").json()
    assert said["members"] == 2
    assert said["coefficients"] == {}
    assert "coefficient" not in run("show", "net").out


def test_a_model_of_arrays_is_shown_too(run):
    from likely import Regressor

    Regressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5]).save("plain.likely")
    assert "Regressor()" in run("show", "plain.likely").out


def test_what_is_no_model(run, shop):
    ran = run("show", shop)
    assert ran.code == 2
    assert "not a model file" in ran.err
