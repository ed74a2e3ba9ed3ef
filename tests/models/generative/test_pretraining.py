"""The start of a mixture of codes: autoencoding by the engine, then a Gaussian mixture."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import PCA, VAE
from likely.core.errors import DataError
from likely.core.spec import Spec
from likely.data.augment import Jitter
from likely.inference import MAP, Ensemble
from likely.inference.dataset import Dataset
from likely.likelihoods import Normal
from likely.models.generative import pretraining
from likely.models.generative.latent_priors import Mixture
from likely.models.generative.pretraining import start_mixture
from likely.models.generative.vae_module import NARROW
from likely.networks import MLP
from likely.optim import Adam

RNG = np.random.default_rng(0)
GROUP = np.arange(300) % 3
BLOBS = RNG.normal(size=(300, 4)) + 6.0 * np.eye(3, 4)[GROUP]


def small(**options):
    given = {"latent": 2, "encoder": MLP((16,)), "decoder": MLP((16,)), "inference": MAP(epochs=1), "random_state": 0}
    return VAE(**{"latent_prior": Mixture(3, pretrain=60)} | given | options)


def test_the_mixture_of_the_start_has_the_moments_of_the_codes():
    """Those of draws from q, exact after a step of EM: Σ π_c μ_c is their mean, and their second moment

    Σ π_c (Σ_c + μ_c μ_cᵀ) = E[μ μᵀ + diag σ²].
    """
    model = small().fit(BLOBS)
    module = model.posterior_.module_of(0)
    rows = Dataset(torch.as_tensor(BLOBS), None, None, torch.float32)
    start_mixture(module, rows, 0)
    prior = module.codes.prior
    with torch.no_grad():
        codes, log_scale = module.codes.seen(module.encoded(rows.x.float(), None))[-1]
        weights = torch.softmax(prior.logits, 0)
        precision = prior.factors().mT @ prior.factors()
        products = prior.mean.unsqueeze(-1) * prior.mean.unsqueeze(-2)
        mean, second = weights @ prior.mean, torch.einsum("c,cij->ij", weights, precision.inverse() + products)
    torch.testing.assert_close(mean, codes.mean(0), rtol=1e-3, atol=1e-3)
    expected = codes.T @ codes / len(codes) + torch.diag((2 * log_scale).exp().mean(0))
    torch.testing.assert_close(second, expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("height", [1.0, 0.0])
def test_groups_of_means_nearer_than_q_is_wide_keep_their_components(height):
    """Circles of radius 0.01 (or that seen from the side, a line) and 0.4, 1 apart, under q with σ = 0.2.

    A component as narrow as the small one would lose it to the other: draws from q lie far outside of it.
    """
    angles = 2 * np.pi * torch.arange(300) / 150
    circle, large = torch.stack([angles.cos(), angles.sin()], 1), torch.arange(300).unsqueeze(1) >= 150
    means = torch.where(large, torch.tensor([1.0, 0.0]) + 0.4 * circle, torch.tensor([0.01, 0.01 * height]) * circle)
    log_scale = torch.full((300, 2), 0.2).log()
    module = small(latent_prior=Mixture(2, pretrain=1)).fit(BLOBS).posterior_.module_of(0)
    module.encoded = lambda x, condition: torch.cat([means, 2 * (log_scale - module.codes.start)], 1)
    start_mixture(module, Dataset(torch.as_tensor(BLOBS), None, None, torch.float32), 0)
    groups = module.codes.prior.responsibilities(means, log_scale).argmax(1)
    assert ((groups == groups[0]) == ~large[:, 0]).all()


def test_a_linear_start_is_that_of_the_principal_components(monkeypatch):
    """The fit itself takes a step of 1e-9: what comes back is what pretraining left, with the error of PCA."""
    linear = {"encoder": MLP(()), "decoder": MLP(()), "latent_prior": Mixture(3, pretrain=200)}
    monkeypatch.setattr(pretraining, "RATE", 0.03)  # a plain problem: large steps save time
    start = small(likelihood=Normal(1.0), inference=MAP(Adam(1e-9), epochs=1), **linear).fit(BLOBS)
    best = PCA(2).fit(BLOBS)
    lost = np.square(best.inverse_transform(best.transform(BLOBS)) - BLOBS).mean()
    assert np.square(start.reconstruct(BLOBS) - BLOBS).mean() == pytest.approx(lost, rel=0.02)


def test_each_member_starts_from_its_seed_and_each_seed_is_trained_once(monkeypatch):
    seeds = []
    kept = pretraining.Pretrained._start
    monkeypatch.setattr(pretraining.Pretrained, "_start", lambda self, seed: seeds.append(seed) or kept(self, seed))
    model = small(latent_prior=Mixture(3, pretrain=2), inference=Ensemble(2, by=MAP(epochs=1))).fit(BLOBS)
    assert len(seeds) == len(set(seeds)) == 2
    first, second = (model.posterior_.module_of(index).codes.prior.mean for index in range(2))
    assert not torch.allclose(first, second)


def test_rows_are_changed_in_pretraining_as_in_training():
    calls = []
    small(
        latent_prior=Mixture(3, pretrain=2), inference=MAP(epochs=1, augment=lambda x: calls.append(len(x)) or x)
    ).fit(BLOBS)
    assert sum(calls) == 300 * 4  # as shown to the columns once, twice before the fit, and once in it


def test_groups_at_the_start_are_those_of_the_mixture_of_codes(monkeypatch):
    """q is narrow by then: with a wide one, other components would explain a code. The fit takes a step of 1e-9."""
    monkeypatch.setattr(pretraining, "RATE", 0.02)
    model = small(inference=MAP(Adam(1e-9), epochs=1)).fit(BLOBS)
    codes, log_scale = model.transform(BLOBS), model.posterior(BLOBS).base_dist.scale.log()
    assert float((log_scale - NARROW).abs().mean()) < 0.3
    prior = model.posterior_.module_of(0).codes.prior
    with torch.no_grad():
        alone = prior.responsibilities(torch.as_tensor(codes).float(), torch.full(codes.shape, -10.0)).argmax(-1)
    assert np.mean(model.predict(BLOBS) == alone.numpy()) > 0.98


def test_a_corrupted_row_is_read_and_the_row_itself_is_scored(monkeypatch):
    rows = []
    monkeypatch.setattr(Jitter, "change", lambda self, x: rows.append(len(x)) or torch.full_like(x, 7.0))
    model = small(latent_prior=Mixture(3, pretrain=2, corrupt=Jitter(0.5))).fit(BLOBS)
    assert sum(rows) == 2 * 300  # not in the fit
    module, x = model.posterior_.module_of(0), torch.as_tensor(BLOBS, dtype=torch.float32)
    scored = pretraining._Autoencoding(module, Jitter(0.5))
    with torch.no_grad():
        mean, log_scale = module.codes.middle(module.encoded(torch.full_like(x, 7.0), None))
        value = module.observed.log_prob(module.decoded(mean.unsqueeze(0), None), x)[0]
        torch.testing.assert_close(scored(x), value - 0.5 * (log_scale - NARROW).square().sum(-1))


def test_corruption_as_text_and_in_json():
    prior = Mixture(3, corrupt="jitter(0.5)")
    assert prior.corrupt == Jitter(0.5)
    assert Spec.from_json(prior.to_json()) == prior


def test_few_rows_are_named():
    with pytest.raises(DataError, match="X has 2 rows, too few for the 3 components"):
        small(latent_prior=Mixture(3, pretrain=1)).fit(BLOBS[:2])
