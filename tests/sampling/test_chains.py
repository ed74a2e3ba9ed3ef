"""Chains: all draws of all chains, their summaries, and names for ArviZ."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.sampling.chains import Chains, as_names
from likely.sampling.convergence import diagnose

DRAWS = torch.randn(4, 50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def chains(draws=DRAWS, **options):
    return Chains(draws, -draws.square().sum(-1), torch.tensor([0.2, 0.4, 0.6, 0.8]), **options)


def test_summaries_are_over_all_chains():
    flat = DRAWS.numpy().reshape(200, 2)
    assert torch.equal(chains().flat, torch.from_numpy(flat))
    np.testing.assert_allclose(chains().mean, flat.mean(0), rtol=1e-12)
    np.testing.assert_allclose(chains().std, flat.std(0, ddof=1), rtol=1e-12)
    assert repr(chains()) == "Chains(4 chains × 50 draws of (2,), acceptance 0.50)"


def test_diagnostics_are_those_of_each_coordinate():
    rhat, ess = diagnose(DRAWS.numpy())
    np.testing.assert_allclose(chains().rhat, rhat, rtol=1e-12)
    np.testing.assert_allclose(chains().ess, ess, rtol=1e-12)


def test_chains_apart_have_a_large_rhat_and_one_chain_has_none():
    apart = DRAWS + 10.0 * torch.arange(4.0)[:, None, None]
    assert float(chains(apart).rhat.min()) > 2
    alone = Chains(DRAWS[:1], DRAWS[:1].sum(-1), torch.ones(1))
    assert alone.rhat.isnan().all()
    assert alone.ess.isfinite().all()


def test_variables_are_one_array_or_one_for_each_name():
    assert chains()._variables()["x"].shape == (4, 50, 2)
    named = chains(names=("a", "b"))._variables()
    assert list(named) == ["a", "b"]
    np.testing.assert_array_equal(named["b"], DRAWS[..., 1].numpy())


def test_names_are_one_or_one_for_each_coordinate():
    assert as_names(None, (2,)) == "x"
    assert as_names("theta", (3, 4)) == "theta"
    assert as_names(["a", "b"], (2,)) == ("a", "b")
    for names, event in ((["a"], (2,)), (["a", "a"], (2,)), (["a", "b"], (1, 2))):
        with pytest.raises(DataError, match="names must be one name, or a different one for each coordinate"):
            as_names(names, event)
