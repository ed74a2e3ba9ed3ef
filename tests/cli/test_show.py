"""`likely show`: what is in a model file."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from likely import GaussianMixture, Mixture, Regressor, load
from likely.inference import HMC
from likely.networks import MLP


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


@pytest.mark.parametrize("target", ["spend", "outcome", "city"])
def test_the_table_is_that_of_summary(run, shop, target):
    """Of a number, of two classes and of three, in the units of the columns."""
    assert run("fit", shop, "-t", target, "--ignore", "id", "--out", "model.likely").code == 0
    told, summary = run("show", "model.likely", "--json").json(), load("model.likely").summary()
    assert [row["term"] for row in told["summary"]] == list(summary.terms)
    assert any(term.endswith("intercept") for term in summary.terms)
    test = "t" if target == "spend" else "z"
    columns = ("estimate", "standard_error", "lower", "upper", "statistic", "p_value")
    for name, key in zip(columns, ("estimate", "standard_error", "lower 95 %", "upper 95 %", test, "p"), strict=True):
        values = [np.nan if row[key] is None else row[key] for row in told["summary"]]
        np.testing.assert_allclose(values, getattr(summary, name), rtol=1e-12)
    assert told["fit"] == pytest.approx(dict(summary.facts))
    out = run("show", "model.likely").out
    for words in ("standard error", "lower 95 %", "log likelihood", "aic", "bic", "standard errors by observed"):
        assert words in out


def test_a_posterior_is_shown_by_its_intervals(run, shop):
    options = ["--inference", "exact(posterior=full)"]
    assert run("fit", shop, "-t", "spend", "--ignore", "id", *options, "--out", "model.likely").code == 0
    told, summary = run("show", "model.likely", "--json").json(), load("model.likely").summary()
    assert [row["upper 95 %"] for row in told["summary"]] == pytest.approx(list(summary.upper), nan_ok=True)
    assert "standard errors by the posterior" in run("show", "model.likely").out


def test_a_network_has_no_coefficients(run, shop):
    options = ["--network", "mlp(hidden=[3])", "--inference", "ensemble(members=2, by=map(epochs=2))"]
    assert run("fit", shop, "-t", "spend", "--ignore", "id", *options, "--out", "net").code == 0
    said = run("show", "net", "--json").json()
    assert said["members"] == 2
    assert said["coefficients"] == {}
    assert "coefficient" not in run("show", "net").out


def test_the_affine_map_beside_networks_is_told_with_its_weight(run):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = Regressor(network=MLP((4,)), random_state=0).fit(X, X @ [1.0, 2.0] + 0.1 * rng.normal(size=60))
    model.save("straight.likely")
    weights = model.posterior_.weights.tolist()
    assert weights[-1] > 0.5  # a linear model is all there is to know
    said = run("show", "straight.likely", "--json").json()
    assert said["members"] == len(weights) == 9
    assert said["affine_weight"] == weights[-1]
    told = f"8 networks and an affine map of the columns, averaged over; the weight of the map is {weights[-1]:.4g}"
    assert told in run("show", "straight.likely").out.replace("\n", " ")


def test_a_model_of_arrays_is_shown_too(run):
    Regressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5]).save("plain.likely")
    assert "Regressor()" in run("show", "plain.likely").out


def test_learned_values_and_arrays_of_other_models(run):
    model = GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(40, 3)))
    model.save("mixture.likely")
    said = run("show", "mixture.likely", "--json").json()
    assert said["model"] == repr(model)
    assert said["parameters"]["covariances_"] == [2, 3, 3]
    assert said["learned"]["n_iter"] == model.n_iter_
    assert said["learned"]["log_likelihood"] == model.log_likelihood_
    assert said["members"] == 0
    assert "sets of parameters" not in run("show", "mixture.likely").out


def test_draws_of_a_model_are_counted(run):
    sampler = HMC(chains=2, draws=5, warmup=5)
    model = Mixture("poisson", 2, inference=sampler, random_state=0).fit(np.arange(12.0)[:, None] % 5)
    model.save("draws.likely")
    said = run("show", "draws.likely", "--json").json()
    assert said["members"] == len(model.draws_["member_weights"])
    assert said["parameters"]["member_weights"] == []


def test_a_table_model_is_shown_without_torch(regressor):
    code = f"""
import sys
from typer.testing import CliRunner
from likely.cli.app import app
for options in ([], ["--json"]):
    ran = CliRunner().invoke(app, ["show", {str(regressor)!r}, *options])
    assert ran.exit_code == 0, ran
    assert "network.weight" in ran.output
print([name for name in ("torch", "sklearn", "scipy", "polars", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_damaged_file_is_refused(run, regressor, refused):
    content = bytearray(regressor.read_bytes())
    content[-1] ^= 1
    with open("damaged.likely", "wb") as stream:
        stream.write(content)
    refused(run("show", "damaged.likely"), "damaged.likely is damaged", "checksum")


def test_a_description_of_something_else_is_refused(run, refused):
    from likely.core.files import write_file

    write_file("other.likely", {"model": "TableModel", "params": {}, "learned": []}, {})
    refused(run("show", "other.likely"), "other.likely does not describe a model: no 'model'.")


def test_what_is_no_model(run, shop):
    ran = run("show", shop)
    assert ran.code == 2
    assert "not a model file" in ran.err


def test_learned_constants_and_small_arrays_are_shown(run):
    from likely.likelihoods import NegativeBinomial

    rng = np.random.default_rng(0)
    counts = Regressor(NegativeBinomial()).fit(rng.normal(size=(60, 1)), rng.negative_binomial(2, 0.4, 60))
    counts.save("counts.likely")
    said = run("show", "counts.likely", "--json").json()
    assert said["constants"] == pytest.approx(counts.constants_)
    assert f"constants dispersion {counts.constants_['dispersion']:.4g}" in run("show", "counts.likely").out
    model = GaussianMixture(2, random_state=0).fit(rng.normal(size=(40, 2)))
    model.save("mixture.likely")
    assert ", ".join(f"{weight:.4g}" for weight in model.weights_) in run("show", "mixture.likely").out


def test_a_single_set_of_parameters_is_not_said_to_be_averaged_over(run, regressor):
    assert "averaged over" not in run("show", regressor).out
