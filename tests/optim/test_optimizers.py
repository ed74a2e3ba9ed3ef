"""What every optimiser promises: it descends, resumes to the bit, and is a value."""

from __future__ import annotations

import copy

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.spec import Spec, registered
from likely.optim import (
    LBFGS,
    SGD,
    AdaGrad,
    Adam,
    AdamW,
    Armijo,
    ExtraGradient,
    GradientDescent,
    HeavyBall,
    Nesterov,
    Optimizer,
    RMSprop,
)

EVERY = [cls.example() for name, cls in registered(Optimizer).items() if cls.__module__.startswith("likely.")]


def problem(dtype=torch.float32):
    """A quadratic in two tensors, one of them a matrix."""
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in [(4, 3), (4,)]]
    centre = torch.randn(4, 3, generator=generator).to(dtype)

    def loss() -> torch.Tensor:
        return ((parts[0] - centre) ** 2 * torch.arange(1, 4)).sum() + 0.5 * (parts[1] + parts[0].sum(1)).square().sum()

    return parts, loss


def run(spec, parts, loss, steps, state=None):
    optimizer = spec.build(parts)
    if state is not None:
        optimizer.load_state_dict(state)

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(steps):
        if spec.needs_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return optimizer


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_it_lowers_a_quadratic(spec):
    parts, loss = problem()
    before = loss().item()
    run(spec, parts, loss, 30)
    assert loss().item() < before


@pytest.mark.parametrize("spec", [*EVERY, SGD(momentum=0.9), GradientDescent(0.01, line_search=None)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_resumed_run_is_the_same_to_the_bit(spec, dtype):
    parts, loss = problem(dtype)
    run(spec, parts, loss, 12)

    again, same_loss = problem(dtype)
    state = copy.deepcopy(run(spec, again, same_loss, 5).state_dict())
    run(spec, again, same_loss, 7, state)
    assert all(torch.equal(a, b) for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize("spec", [spec for spec in EVERY if spec.elementwise], ids=str)
def test_elementwise_optimisers_step_stacked_members_as_each_by_itself(spec):
    gradients = torch.randn(6, 5, 3, 2, generator=torch.Generator().manual_seed(1))
    stacked = torch.ones(5, 3, 2, requires_grad=True)
    members = [torch.ones(3, 2, requires_grad=True) for _ in range(5)]
    together, apart = spec.build([stacked]), [spec.build([member]) for member in members]

    def step(optimizer, parameter, gradient):
        parameter.grad = gradient.clone()
        if spec.looks_ahead:
            optimizer.look_ahead()
        optimizer.step()

    for gradient in gradients:
        step(together, stacked, gradient)
        for member, optimizer, own in zip(members, apart, gradient, strict=True):
            step(optimizer, member, own)
    torch.testing.assert_close(stacked, torch.stack(members), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("spec", [spec for spec in EVERY if not spec.needs_closure], ids=str)
@pytest.mark.parametrize("layout", ["expanded gradient", "transposed gradient", "transposed parameter"])
def test_memory_layout_does_not_change_the_steps(spec, layout):
    generator = torch.Generator().manual_seed(2)
    values = torch.randn(4, 3, generator=generator)
    plain = values.clone().requires_grad_()
    other = values.t().contiguous().t().requires_grad_() if layout == "transposed parameter" else values.clone()
    other.requires_grad_()
    optimizers = [spec.build([plain]), spec.build([other])]
    for _ in range(3):
        row = torch.randn(4, 1, generator=generator).expand(4, 3)
        gradient = row if layout == "expanded gradient" else torch.randn(3, 4, generator=generator).t()
        plain.grad, other.grad = gradient.contiguous(), gradient
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(other, plain)


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_text_and_json_round_trip(spec):
    changed = spec.replace(lr=0.125)
    assert Optimizer.parse(repr(changed)) == changed
    assert Spec.from_json(changed.to_json()) == changed
    assert changed.lr == 0.125


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_the_learning_rate_of_the_groups_is_what_counts(spec):
    """A schedule sets it at each step: with 0 nothing moves."""
    parts, loss = problem()
    optimizer = spec.build(parts)
    assert [group["lr"] for group in optimizer.param_groups] == [spec.lr]
    optimizer.param_groups[0]["lr"] = 0.0
    before = [part.detach().clone() for part in parts]

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    closure()
    optimizer.step(closure)
    assert all(torch.equal(a, b) for a, b in zip(parts, before, strict=True))


def test_specs_inside_are_read_from_text():
    text = "gradient_descent(line_search=armijo(shrink=0.3))"
    assert Optimizer.parse(text) == GradientDescent(line_search=Armijo(shrink=0.3))
    assert Optimizer.parse("adam(0.01)") == Adam(lr=0.01)


def test_who_needs_a_closure_and_who_can_be_stacked():
    assert {type(s) for s in EVERY if s.needs_closure} == {ExtraGradient, GradientDescent, LBFGS}
    assert {type(s) for s in EVERY if not s.elementwise} == {GradientDescent, LBFGS}


def test_lbfgs_solves_a_quadratic():
    parts, loss = problem(torch.float64)
    run(LBFGS(iterations=100), parts, loss, 1)
    gradients = torch.autograd.grad(loss(), parts)
    assert max(gradient.abs().max() for gradient in gradients) < 1e-6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(lr=0), r"SGD\(lr=0\): lr must be a positive number"),
        (lambda: SGD(lr="fast"), "lr must be a positive number"),
        (lambda: Adam(lr=float("inf")), "lr must be a positive number"),
        (lambda: Adam(lr=float("nan")), "lr must be a positive number"),
        (lambda: SGD(momentum=1.0), "momentum must be 0 or more and below 1"),
        (lambda: SGD(nesterov=True), "nesterov must be False when momentum is 0"),
        (lambda: SGD(nesterov=1, momentum=0.5), "nesterov must be True or False"),
        (lambda: SGD(weight_decay=-1), "weight_decay must be 0 or more"),
        (lambda: HeavyBall(momentum=-0.1), "momentum must be 0 or more and below 1"),
        (lambda: Nesterov(momentum=0.0), "momentum must be above 0 and below 1"),
        (lambda: AdaGrad(eps=0), "eps must be a positive number"),
        (lambda: RMSprop(decay=1), "decay must be 0 or more and below 1"),
        (lambda: ExtraGradient(betas=(0.5,)), "betas must be None, or two numbers, each 0 or more and below 1"),
        (lambda: ExtraGradient(eps=0), "eps must be a positive number"),
        (lambda: Adam(betas=(0.9,)), "betas must be two numbers, each 0 or more and below 1"),
        (lambda: Adam(betas=(0.9, 1.0)), "betas must be two numbers"),
        (lambda: AdamW(weight_decay=None), "weight_decay must be 0 or more"),
        (
            lambda: GradientDescent(line_search="armijo"),
            r"line_search must be None or a line search such as Armijo\(\)",
        ),
        (lambda: LBFGS(history=0), "history must be an integer, 1 or more"),
        (lambda: LBFGS(iterations=2.5), "iterations must be an integer, 1 or more"),
        (lambda: LBFGS(tol=-1), "tol must be 0 or more"),
    ],
)
def test_a_wrong_argument_is_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
