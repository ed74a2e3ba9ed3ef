"""Attacks on fitted models: inside the ball and the range, no weaker than simpler ones, and honest about success."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.inference import HMC, MAP, Ensemble, Laplace, MCDropout
from likely.networks import MLP, Transformer
from likely.optim import Adam
from likely.optim.ascent import followed
from likely.robust import FGSM, PGD, Linear, attack
from likely.robust.victims import victim_of

NORMS = (1, 2, math.inf)
RADII = {1: 1.5, 2: 1.0, math.inf: 0.6}


def margin_of(model, X, y):
    """max over k ≠ y of log p(k | x) − log p(y | x), through the public door."""
    log_proba = model.predict_log_proba(X).astype(float)
    place = np.searchsorted(model.classes_, y)
    own = log_proba[np.arange(len(y)), place]
    log_proba[np.arange(len(y)), place] = -np.inf
    return log_proba.max(1) - own


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bounded", [False, True])
def test_changed_rows_are_in_the_ball_and_in_the_range(net, clouds, norm, bounded):
    X, y = clouds
    bounds = (X.min(0), X.max(0)) if bounded else None
    radius = RADII[norm]
    for method in (FGSM(radius, norm), PGD(radius, norm, steps=5, restarts=2)):
        found = attack(net, X, y, method, bounds=bounds, random_state=0)
        assert (np.linalg.norm(found.perturbed - X, norm, axis=1) <= radius * (1 + 1e-5)).all()
        np.testing.assert_allclose(found.size(norm), np.linalg.norm(found.perturbed - X, norm, axis=1), atol=1e-5)
        if bounds is not None:
            assert (found.perturbed >= bounds[0]).all()
            assert (found.perturbed <= bounds[1]).all()


@pytest.mark.parametrize("norm", NORMS)
def test_pgd_is_no_weaker_than_fgsm_and_restarts_never_hurt(net, clouds, norm):
    X, y = clouds
    methods = [
        FGSM(RADII[norm], norm),
        PGD(RADII[norm], norm, steps=6),
        PGD(RADII[norm], norm, steps=6, restarts=3),
    ]
    results = [attack(net, X, y, method, random_state=0) for method in methods]
    margins = [margin_of(net, found.perturbed, y) for found in results]
    for weak, strong in itertools.pairwise(margins):
        assert (strong >= np.minimum(weak, 0) - 1e-5).all()
    assert results[0].rate <= results[1].rate <= results[2].rate


def test_success_is_what_predict_says_and_rows_in_error_stay(net, clouds):
    X, y = clouds
    wrong = y.copy()
    wrong[:5] = np.where(y[:5] == "a", "b", "a")
    found = attack(net, X, wrong, PGD(0.3, steps=3))
    np.testing.assert_array_equal(found.success, net.predict(found.perturbed) != wrong)
    np.testing.assert_array_equal(found.predicted, net.predict(found.perturbed))
    np.testing.assert_array_equal(found.perturbed[:5], X[:5])
    assert found.success[:5].all()
    assert not found.steps[:5].any()
    assert "rows fooled" in str(found)


def test_the_same_seed_gives_the_same_rows(net, clouds):
    method = PGD(0.2, steps=2, restarts=3)
    first, again, other = (attack(net, *clouds, method, random_state=seed).perturbed for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("inference", "network"),
    [
        (Ensemble(3, by=MAP(Adam(0.03), epochs=20)), MLP((8,))),
        (HMC(chains=2, draws=20, warmup=20), MLP((4,), activation="tanh")),
        (MCDropout(5, by=MAP(Adam(0.03), epochs=20)), MLP((16,), dropout=0.1)),
        (Laplace(draws=8), MLP((4,), activation="tanh")),
    ],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.filterwarnings("ignore::likely.core.errors.LikelyWarning")
def test_gradients_go_through_the_average_over_the_posterior(clouds, inference, network):
    X, y = clouds
    model = Classifier(network=network, prior="normal(1.0)", inference=inference, random_state=0).fit(X, y)
    rows, labels = X[:6], y[:6]
    victim = victim_of(model)
    x = victim.read(rows)
    targets = victim.targets(x, rows, labels)
    point = x.clone().requires_grad_()
    loss, _ = victim.evaluate(point, targets)
    torch.testing.assert_close(
        loss.detach(), -torch.from_numpy(model.log_prob(rows, labels)).to(loss), atol=1e-5, rtol=1e-4
    )
    (gradient,) = torch.autograd.grad(loss.sum(), point)
    step = 1e-2 if x.dtype == torch.float32 else 1e-5
    for column in range(4):
        ends = [x.clone(), x.clone()]
        ends[0][:, column] -= step
        ends[1][:, column] += step
        below, above = (victim.evaluate(end, targets)[0] for end in ends)
        torch.testing.assert_close((above - below) / (2 * step), gradient[:, column], rtol=0.05, atol=0.02)
    assert attack(model, X, y, PGD(2.0, steps=5)).rate > 1 - model.score(X, y)


@pytest.mark.parametrize("target", ["three labels", "two labels", "numbers"])
def test_gradients_by_hand_are_those_of_autograd(net, clouds, target):
    X, y = clouds[0][:20], clouds[1][:20]
    model, fit = net, MAP(Adam(0.03), epochs=3)
    if target == "two labels":
        model, y = Classifier(network=MLP((8,)), inference=fit, random_state=0).fit(X, y == "a"), y == "a"
    elif target == "numbers":
        model, y = Regressor(network=MLP((8,)), inference=fit, random_state=0).fit(X, X[:, 0]), X[:, 0]
    victim = victim_of(model)
    x = victim.read(X)
    targets = victim.targets(x, X, y)
    assert victim.passes is not None
    for ours, automatic in zip(victim.follow(x, targets), followed(victim, x, targets), strict=True):
        torch.testing.assert_close(ours, automatic, rtol=1e-4, atol=1e-5)


def test_predictions_follow_no_gradients_unless_rows_ask(net, clouds):
    x = torch.from_numpy(clouds[0]).float()
    assert not net.posterior_.eta(x).requires_grad
    assert net.posterior_.eta(x.requires_grad_()).requires_grad
    with torch.no_grad():
        assert not net.posterior_.eta(x).requires_grad


def test_frames_and_many_blocks(clouds, monkeypatch):
    import pandas as pd

    frame = pd.DataFrame(clouds[0], columns=list("pqrs"))
    model = Classifier(prior="normal(1.0)").fit(frame, clouds[1])
    whole = attack(model, frame, clouds[1], FGSM(0.5))
    monkeypatch.setattr("likely.robust.victims.BLOCK", 1)
    monkeypatch.setattr("likely.robust.victims.LEAST", 7)
    np.testing.assert_allclose(attack(model, frame, clouds[1], FGSM(0.5)).perturbed, whole.perturbed)


# --- bad input --------------------------------------------------------------------------------------------------------
def test_bad_input_is_refused_in_words(net, clouds, rng):
    X, y = clouds
    with pytest.raises(SpecError, match=r"PGD\(norm=3\): norm must be inf, 2 or 1"):
        PGD(0.1, norm=3)
    with pytest.raises(SpecError, match=r"FGSM\(norm=0.5\): norm must be a number p from 1 to inf"):
        FGSM(0.1, norm=0.5)
    with pytest.raises(SpecError, match=r"radius must be a positive number, in the units of X"):
        FGSM(-1.0)
    with pytest.raises(
        DataError, match=r"radius=80 is beyond the range of X, which goes from .* radii are in the units"
    ):
        attack(net, X, y, FGSM(80.0))
    with pytest.raises(DataError, match="no two rows are further apart than"):
        attack(net, X, y, PGD(800.0, norm=2))
    with pytest.raises(DataError, match=r"X goes from .* beyond bounds=\(0, 1\)"):
        attack(net, X, y, FGSM(0.1), bounds=(0, 1))
    with pytest.raises(DataError, match="low must be below high"):
        attack(net, X, y, FGSM(0.1), bounds=(1, 0))
    with pytest.raises(DataError, match=r"bounds=3 must be \(low, high\)"):
        attack(net, X, y, FGSM(0.1), bounds=3)
    with pytest.raises(DataError, match="z"):
        attack(net, X, np.full(90, "z"), FGSM(0.1))
    with pytest.raises(DataError, match="y has 3 rows"):
        attack(net, X, y[:3], FGSM(0.1))
    with pytest.raises(SpecError, match="method must be one of the attack specs"):
        attack(net, X, y, 3)
    with pytest.raises(Exception, match="not fitted"):
        attack(Classifier(), X, y, FGSM(0.1))
    with pytest.raises(SpecError, match="Linear is exact for one linear model"):
        attack(net, X, y, Linear(0.1))
    with pytest.raises(SpecError, match="threshold=-1 must be a number"):
        attack(Regressor().fit(X, X[:, 0]), X, X[:, 0], FGSM(0.1), threshold=-1)
    with pytest.raises(SpecError, match=r"model must give logits \(n, classes\)"):
        attack(lambda x: x.sum(1), X, None, FGSM(0.1))
    with pytest.raises(DataError, match="y has labels 0 to 9; the model has classes 0 to 3"):
        attack(lambda x: x, X, np.arange(90) % 10, FGSM(0.1))


def test_tokens_have_no_small_changes(rng):
    tokens = rng.integers(5, size=(12, 4))
    network = Transformer(width=8, heads=2, layers=1, tokens=5)
    model = Classifier(network=network, inference=MAP(epochs=1), random_state=0).fit(tokens, tokens[:, 0] > 2)
    with pytest.raises(DataError, match=r"inputs are tokens \(integers\), which have no small changes"):
        attack(model, tokens, tokens[:, 0] > 2, FGSM(1.0))


def test_networks_without_gradients_say_so(clouds):
    X = torch.from_numpy(clouds[0]).float()
    with pytest.raises(SpecError, match="gives no gradient with respect to its inputs"):
        attack(lambda x: x.detach(), X, None, PGD(0.1))
    with pytest.warns(ApproximationWarning, match="No row changed: the gradient is 0"):
        attack(lambda x: x.sign() + 0 * x, X, None, PGD(0.1, steps=2))
