"""Autoencoder: the plane of the principal components, prices in closed form, gaps, every inference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles

import likely
from likely import PCA, Autoencoder
from likely.core.errors import DataError, SpecError
from likely.inference import MAP
from likely.inference.objective import RowDensity, able
from likely.likelihoods import Bernoulli, Normal
from likely.networks import MLP
from likely.optim import LBFGS, Adam

RNG = np.random.default_rng(0)
STAR = 2 * np.pi * np.arange(5) / 5
DIRECTIONS = np.sqrt(2) * np.stack([np.cos(STAR), np.sin(STAR)])  # at right angles, and in all columns alike
PLANE = RNG.normal(size=(300, 2)) * [3.0, 2.0] @ DIRECTIONS + 0.3 * RNG.normal(size=(300, 5))
FULL = MAP(LBFGS(), epochs=150, batch_size=None)


def small(**options):
    given = {"latent": 2, "encoder": MLP((8,)), "decoder": MLP((8,)), "inference": MAP(epochs=20), "random_state": 0}
    return Autoencoder(**given | options)


def test_a_linear_one_spans_the_plane_of_the_principal_components():
    model = Autoencoder(2, MLP(()), MLP(()), Normal(1.0), inference=FULL, random_state=0).fit(PLANE)
    basis = model.inverse_transform(np.eye(2)) - model.inverse_transform(np.zeros((2, 2)))
    angles = subspace_angles(basis.T, PCA(2).fit(PLANE).components_.T)
    assert np.rad2deg(angles).max() < 1.0
    best = PCA(2).fit(PLANE)
    lost = ((best.inverse_transform(best.transform(PLANE)) - PLANE) ** 2).sum()
    assert ((model.reconstruct(PLANE) - PLANE) ** 2).sum() == pytest.approx(lost, rel=0.02)


def test_the_price_of_contraction_is_the_squared_jacobian():
    model = small(contraction=1.0).fit(PLANE)
    module = model.posterior_.module_of(0).double().eval()
    x = torch.as_tensor(PLANE[:6])
    inputs = module.features(x)
    jacobian = torch.autograd.functional.jacobian(lambda rows: module.encoder(rows).sum(0), inputs)  # (latent, n, d)
    exact = jacobian.square().sum((0, 2))
    z, squares = module._with_jacobian(inputs, None)
    torch.testing.assert_close(squares, exact)
    value = module.observed.log_prob(module.decoder(z), x) - exact
    torch.testing.assert_close(module(x), value)


def test_contraction_of_a_linear_code_is_the_squared_weight():
    module = small(encoder=MLP(()), contraction=1.0).fit(PLANE).posterior_.module_of(0)
    _, squares = module._with_jacobian(torch.zeros(3, 5), None)
    torch.testing.assert_close(squares, module.encoder.network.weight.square().sum().expand(3))


def test_contraction_and_sparsity_shrink_codes():
    training = MAP(Adam(0.01), epochs=60)
    plain, flat, sparse = (
        small(inference=training, **cost).fit(PLANE) for cost in ({}, {"contraction": 20.0}, {"sparsity": 20.0})
    )
    size = [np.abs(model.transform(PLANE)).mean() for model in (plain, flat, sparse)]
    assert size[2] < 0.2 * size[0]
    near = PLANE[:1] + np.array([[0.0], [1e-3]])
    moves = [np.abs(np.diff(model.transform(near), axis=0)).sum() for model in (plain, flat)]
    assert moves[1] < moves[0]


def test_sparsity_brings_codes_to_zero():
    training = MAP(Adam(0.01), epochs=100)
    wide = {"latent": 6, "encoder": MLP((16,)), "decoder": MLP((16,)), "inference": training}
    zeros = [(np.abs(small(sparsity=s, **wide).fit(PLANE).transform(PLANE)) < 0.05).mean() for s in (0.0, 1.0)]
    assert zeros[1] > zeros[0] + 0.1


def test_noise_in_training_gives_back_rows_without_it():
    """Rows with noise come back nearer to the clean ones: of five directions of the noise the plane keeps two."""
    noisy = PLANE + RNG.normal(size=PLANE.shape)
    linear = {"encoder": MLP(()), "decoder": MLP(())}
    model = small(noise=0.3, inference=MAP(Adam(0.03), epochs=100), **linear).fit(PLANE)
    assert ((model.reconstruct(noisy) - PLANE) ** 2).mean() < 0.8 * ((noisy - PLANE) ** 2).mean()


def test_gaps_are_filled_by_what_the_code_gives():
    holes = PLANE.copy()
    gaps = RNG.random(PLANE.shape) < 0.1
    holes[gaps] = np.nan
    for rows in (holes, PLANE):
        model = small(inference=MAP(Adam(0.01), epochs=100)).fit(rows)
        error = np.sqrt(((model.impute(holes) - PLANE)[gaps] ** 2).mean())
        assert error < 0.8 * np.sqrt((PLANE[gaps] ** 2).mean())


def test_it_is_not_a_density():
    model = small().fit(PLANE)
    for verb in ("log_prob", "sample"):
        with pytest.raises(AttributeError, match=f"Autoencoder has no {verb}: it maps rows to codes and back"):
            getattr(model, verb)
    assert np.isfinite(model.score(PLANE, sample_weight=np.arange(300)))


@pytest.mark.parametrize("name", sorted(able(RowDensity("Autoencoder", "bound"))))
def test_every_inference_that_takes_a_bound_fits_it(name, tmp_path):
    inference = able(RowDensity("Autoencoder", "bound"))[name].example()
    model = small(encoder=MLP((3,)), decoder=MLP((3,)), inference=inference, prior=likely.priors.Normal(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few steps
        model.fit(PLANE[:40], np.arange(40) % 2)
    codes = model.transform(PLANE[:40], np.arange(40) % 2)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(likely.load(tmp_path / "model").transform(PLANE[:40], np.arange(40) % 2), codes)


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (lambda: small(latent=-1).fit(PLANE), SpecError, "latent must be a positive integer"),
        (lambda: small(noise=-1.0).fit(PLANE), SpecError, "noise must be a number, 0 or more"),
        (lambda: small(sparsity=float("nan")).fit(PLANE), SpecError, "sparsity must be a number, 0 or more"),
        (lambda: small(likelihood=Bernoulli()).fit(PLANE), DataError, "Bernoulli needs labels 0 and 1"),
    ],
)
def test_bad_input_is_named(ask, kind, message):
    with pytest.raises(kind, match=message):
        ask()
