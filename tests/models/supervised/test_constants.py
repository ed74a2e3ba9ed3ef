"""Learned constants of a likelihood are those of its distributions, and stand in the table and in the file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor, load
from likely.inference import MAP, Exact
from likely.likelihoods import (
    Beta,
    Gamma,
    Laplace,
    LogNormal,
    NegativeBinomial,
    Normal,
    Ordinal,
    Poisson,
    StudentT,
    Target,
    ZeroInflated,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 1))
NUMBERS = X[:, 0] + RANDOM.normal(size=40)


@pytest.mark.parametrize(
    ("likelihood", "names", "read"),
    [
        (Normal(), ["scale"], lambda d: [d.stddev]),
        (Laplace(), ["scale"], lambda d: [d.scale]),
        (LogNormal(), ["scale"], lambda d: [d.scale]),
        (StudentT(df="learned"), ["scale", "df"], lambda d: [d.scale, d.df]),
        (StudentT(df=3.0), ["scale"], lambda d: [d.scale]),
        (Gamma(), ["concentration"], lambda d: [d.concentration]),
        (Beta(), ["precision"], lambda d: [d.concentration1 + d.concentration0]),
        (NegativeBinomial(), ["dispersion"], lambda d: [1 / d.total_count]),
        (ZeroInflated(Poisson()), ["inflation"], lambda d: [d.logit.sigmoid()]),
        (
            ZeroInflated(NegativeBinomial()),
            ["dispersion", "inflation"],
            lambda d: [1 / d.counts.total_count, d.logit.sigmoid()],
        ),
        (Normal(scale="input"), [], lambda d: []),
        (Poisson(), [], lambda d: []),
    ],
    ids=lambda value: "" if callable(value) else repr(value),
)
def test_they_are_the_numbers_of_the_distribution(likelihood, names, read):
    target = Target()
    eta = torch.tensor([0.3, -0.4, 0.7][: likelihood.size(target)], dtype=torch.float64)
    count = likelihood.shared(target)
    told = likelihood.constants(eta[len(eta) - count :], target)
    assert list(told) == names
    expected = [float(value) for value in read(likelihood.distribution(eta))]
    assert [float(value) for value in told.values()] == pytest.approx(expected)


@pytest.mark.parametrize("inference", [Exact("full"), MAP(epochs=2)], ids=["exact", "map"])
def test_a_model_tells_its_own(inference, tmp_path):
    model = Regressor(inference=inference, random_state=0).fit(X, NUMBERS)
    scale = model.posterior_.parameters["shared"].double().exp().mean()
    assert model.constants_ == {"scale": pytest.approx(float(scale))}
    model.save(tmp_path / "m.likely")
    assert load(tmp_path / "m.likely").constants_ == model.constants_


def test_they_stand_in_the_table():
    table = Regressor().fit(X, NUMBERS).summary()
    assert table.constants["scale"] == pytest.approx(np.std(NUMBERS - Regressor().fit(X, NUMBERS).predict(X)), rel=1e-6)
    assert f"scale {table.constants['scale']:.4g} · rows 40" in str(table)


def test_cut_points_are_terms_of_the_table_and_constants_of_the_model():
    labels = np.array(["low", "mid", "high"])[np.digitize(NUMBERS, [-0.5, 0.5])]
    model = Classifier(likelihood=Ordinal(["low", "mid", "high"])).fit(X, labels)
    assert list(model.constants_) == ["low | mid", "mid | high"]
    assert list(model.constants_.values()) == pytest.approx(model.cut_points_.tolist())
    assert model.summary().constants == {}
    assert model.summary().terms[1:] == ("low | mid", "mid | high")
