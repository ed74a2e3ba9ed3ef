"""What holds for every likelihood, found by its registration."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad, jacrev, vmap

from likely.core.errors import DataError
from likely.core.spec import Spec
from likely.likelihoods import Categorical, Likelihood, MultivariateNormal, Normal, Ordinal, Product, Target
from likely.likelihoods.mle import maximise
from likely.probability.joint import point


def objective(likelihood, eta, y, weight):
    """Σ w log p / Σ w of each of k estimates, for η (k, size) and weights (n, k)."""
    rows = likelihood.log_prob(eta.unsqueeze(1).expand(len(eta), len(y), eta.shape[-1]), y)
    return (weight.T * rows).sum(1) / weight.sum(0)


def test_target_of_size_is_the_inverse_of_size(likelihood):
    target = likelihood.example_target()
    assert likelihood.target_of(likelihood.size(target)) == target
    assert 0 <= likelihood.shared(target) < likelihood.size(target)


def test_bound_to_its_data_a_likelihood_leaves_nothing_open(likelihood, draw):
    _, y = draw(likelihood, 50)
    target = likelihood.target(y)
    bound = likelihood.bind(target)
    assert bound.known_target() == target
    assert bound.size(target) == likelihood.size(target)
    if likelihood.known_target() is not None:
        assert bound == likelihood


def test_bind_writes_down_classes_and_dim_and_keeps_what_is_said():
    assert Ordinal().bind(Target(classes=4)) == Ordinal(4)
    assert Categorical(5).bind(Target(classes=3)) == Categorical(5)
    assert MultivariateNormal("input").bind(Target((3,))) == MultivariateNormal("input", dim=3)
    both = Product({"size": Normal(), "kind": Categorical()})
    y = torch.tensor([[0.5, 0.0], [1.5, 3.0]])
    assert both.bind(both.target(y)) == Product({"size": Normal(), "kind": Categorical(4)})


def test_shapes(likelihood, draw):
    eta, y = draw(likelihood, 20)
    target = likelihood.example_target()
    distribution = likelihood.distribution(eta.reshape(4, 5, -1))
    assert distribution.batch_shape == (4, 5)
    assert tuple(distribution.event_shape) == target.shape
    assert y.shape == (20, *target.shape)
    assert likelihood.log_prob(eta, y).shape == (20,)
    assert len(target.shape) == likelihood.event_dim


def test_sample_lies_in_the_support(likelihood, draw):
    for dtype in (torch.float32, torch.float64):
        eta, y = draw(likelihood, 500, dtype=dtype)
        assert bool(likelihood.support.check(y).all())
        likelihood.check(y)
        assert bool(torch.isfinite(likelihood.log_prob(eta, y)).all())


def test_log_prob_is_that_of_the_distribution(likelihood, draw):
    eta, y = draw(likelihood, 200)
    torch.testing.assert_close(likelihood.log_prob(eta, y), likelihood.distribution(eta).log_prob(y), atol=1e-8, rtol=0)


def test_log_likelihood_is_the_sum(likelihood, draw):
    eta, y = draw(likelihood, 20)
    torch.testing.assert_close(likelihood.log_likelihood(eta, y), likelihood.log_prob(eta, y).sum())


def test_log_prob_broadcasts(likelihood, draw):
    eta, y = draw(likelihood, 6)
    table = likelihood.log_prob(eta.unsqueeze(1), y)  # every η with every y
    torch.testing.assert_close(table.diagonal(), likelihood.log_prob(eta, y))
    assert table.shape == (6, 6)


def test_gradient_is_the_slope_of_differences(likelihood, draw):
    eta, y = draw(likelihood, 5)
    slope = vmap(grad(likelihood.log_prob))(eta, y)
    step = 1e-6
    for j, direction in enumerate(step * torch.eye(eta.shape[-1], dtype=eta.dtype)):
        up, down = likelihood.log_prob(eta + direction, y), likelihood.log_prob(eta - direction, y)
        torch.testing.assert_close(slope[:, j], (up - down) / (2 * step), atol=1e-5, rtol=1e-5)


def test_hessian_is_the_slope_of_the_gradient(likelihood, draw):
    eta, y = draw(likelihood, 5)
    first = vmap(grad(likelihood.log_prob))
    hessian = vmap(jacrev(grad(likelihood.log_prob)))(eta, y)
    torch.testing.assert_close(hessian, hessian.mT)
    step = 1e-6
    for j, direction in enumerate(step * torch.eye(eta.shape[-1], dtype=eta.dtype)):
        difference = (first(eta + direction, y) - first(eta - direction, y)) / (2 * step)
        torch.testing.assert_close(hessian[:, j], difference, atol=1e-4, rtol=1e-4)


def test_derivatives_agree_with_functorch(likelihood, draw):
    eta, y = draw(likelihood, 5)
    _, score, information = likelihood.derivatives(eta, y)
    torch.testing.assert_close(score, vmap(grad(likelihood.log_prob))(eta, y))
    assert bool((torch.linalg.eigvalsh(information) > -1e-9).all())


@pytest.mark.parametrize("extreme", [-100.0, -30.0, 30.0, 100.0])
def test_no_nan_at_extreme_eta(likelihood, draw, extreme):
    for dtype in (torch.float32, torch.float64):
        eta, y = draw(likelihood, 4, dtype=dtype)
        y = y.clamp(-1e4, 1e4)
        for j in range(eta.shape[-1]):
            wild = eta.clone()
            wild[:, j] = extreme
            assert not bool(likelihood.log_prob(wild, y).isnan().any())
            assert not bool(vmap(grad(likelihood.log_prob))(wild, y).isnan().any())


# --- weighted maximum likelihood ------------------------------------------------------------------------------------
def test_score_at_the_estimate_is_zero(smooth, draw):
    _, y = draw(smooth, 200, same=True)
    weight = torch.rand(200, 3, dtype=y.dtype)
    eta = smooth.weighted_mle(y, weight).requires_grad_()
    (score,) = torch.autograd.grad(objective(smooth, eta, y, weight).sum(), eta)
    unit = smooth.baseline(y, weight[:, 0])[1]
    assert float((score * unit).abs().max()) < 1e-7


def test_closed_form_is_the_numeric_optimum(closed_form, draw):
    likelihood = closed_form
    _, y = draw(likelihood, 200, same=True)
    weight = torch.rand(200, 3, dtype=y.dtype)
    closed, numeric = likelihood.weighted_mle(y, weight), maximise(likelihood, y, weight)
    # The slope of a Laplace jumps, so Newton comes only close; the closed form is never the worse one.
    tolerance = 1e-3 if "Laplace" in repr(likelihood) else 1e-9
    gain = objective(likelihood, closed, y, weight) - objective(likelihood, numeric, y, weight)
    assert bool((gain > -1e-12).all())
    assert bool((gain < tolerance).all())
    if "Laplace" not in repr(likelihood):  # compared by what they say of y: logits have a constant to spare
        rows = [likelihood.log_prob(eta.unsqueeze(1), y) for eta in (closed, numeric)]
        torch.testing.assert_close(rows[0], rows[1], atol=1e-5, rtol=0)


def test_each_column_of_weights_is_an_estimate_of_its_own(likelihood, draw):
    _, y = draw(likelihood, 100, same=True)
    weight = torch.rand(100, 2, dtype=y.dtype)
    together = likelihood.weighted_mle(y, weight)
    assert together.shape == (2, likelihood.size(likelihood.target(y)))
    for k in range(2):
        alone = likelihood.weighted_mle(y, weight[:, k])
        torch.testing.assert_close(together[k], alone, atol=1e-6, rtol=1e-6)


def test_weight_two_is_repetition(likelihood, draw):
    _, y = draw(likelihood, 60, same=True)
    weight = torch.randint(1, 3, (60,)).to(y.dtype)
    repeated = y.repeat_interleave(weight.long(), 0)
    torch.testing.assert_close(
        likelihood.weighted_mle(y, weight),
        likelihood.weighted_mle(repeated, torch.ones(len(repeated), dtype=y.dtype)),
        atol=1e-6,
        rtol=1e-6,
    )


def test_rows_without_weight_and_missing_rows_do_not_count(likelihood, draw):
    _, y = draw(likelihood, 60, same=True)
    weight = torch.ones(60, dtype=y.dtype)
    more = torch.cat([y, y[:5], torch.full_like(y[:5], torch.nan)])
    weights = torch.cat([weight, torch.zeros(5, dtype=y.dtype), torch.ones(5, dtype=y.dtype)])
    likelihood.check(more)
    torch.testing.assert_close(likelihood.weighted_mle(more, weights), likelihood.weighted_mle(y, weight))


def test_no_weight_at_all_is_uniform_weight(likelihood, draw):
    _, y = draw(likelihood, 30, same=True)
    nothing = likelihood.weighted_mle(y, torch.zeros(30, dtype=y.dtype))
    torch.testing.assert_close(nothing, likelihood.weighted_mle(y, torch.ones(30, dtype=y.dtype)))


def test_estimates_of_one_row_are_finite(likelihood, draw):
    for dtype in (torch.float32, torch.float64):
        _, y = draw(likelihood, 1, dtype=dtype)
        offset, unit = likelihood.baseline(y, torch.ones(1, dtype=dtype))
        assert offset.dtype == unit.dtype == dtype
        assert offset.shape == unit.shape == (likelihood.size(likelihood.target(y)),)
        assert bool(offset.isfinite().all())
        assert bool((unit.isfinite() & (unit > 0)).all())


# --- as a value, and at the door ------------------------------------------------------------------------------------
def test_json_and_text_round_trip(likelihood):
    assert Spec.from_json(likelihood.to_json()) == likelihood
    assert Likelihood.parse(repr(likelihood)) == likelihood
    target = likelihood.example_target()
    assert Target.from_json(target.to_json()) == target


def test_infinity_is_refused(likelihood, draw):
    _, y = draw(likelihood, 3)
    y.reshape(3, -1)[1, 0] = torch.inf
    with pytest.raises(DataError, match=r"y has an infinite value \(inf at row 1\); \w+ needs .+\."):
        likelihood.check(y)


def test_placeholder_is_inside_the_support(likelihood, draw):
    _, y = draw(likelihood, 3)
    filled = likelihood.placeholder(y).expand_as(y)
    assert bool(likelihood.support.check(filled).all())


def test_missing_is_per_target(likelihood, draw):
    _, y = draw(likelihood, 3)
    y[1] = torch.nan
    assert likelihood.missing(y).tolist() == [False, True, False]
    if likelihood.event_dim and not isinstance(likelihood, Product):
        y[2, 0] = torch.nan
        assert likelihood.missing(y).tolist() == [False, True, True]


# --- one best value -------------------------------------------------------------------------------------------------
def test_the_mean_is_that_of_the_distribution(likelihood, draw):
    eta, _ = draw(likelihood, 20)
    mean, expected = likelihood.mean(eta), point(likelihood.distribution(eta))
    assert bool(torch.isfinite(mean.double()).all())
    exists = expected.isfinite()  # a Student t with df ≤ 1 has none
    torch.testing.assert_close(mean[exists], expected[exists])


def test_probabilities_of_classes_are_those_of_the_distribution(labelled, draw):
    eta, _ = draw(labelled, 20)
    probabilities = labelled.probabilities(eta)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(20, dtype=eta.dtype))
    for label in range(probabilities.shape[-1]):
        y = torch.full((20,), float(label), dtype=eta.dtype)
        torch.testing.assert_close(probabilities[:, label], labelled.log_prob(eta, y).exp())
