"""Forward and reverse mode agree with each other and with calculus; each costs what it should."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.inference import MAP, Ensemble
from likely.networks import MLP
from likely.theory.differentiate import hessian, jacobian, jvp, module_of, vjp

MODES = ("forward", "reverse", "auto")


def close(a, b, tolerance=1e-10):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def net(inputs, outputs, hidden=(7, 5), activation="tanh"):
    return MLP(hidden, activation=activation).build((inputs,), outputs).double()


class _Counted(torch.autograd.Function):
    """sin, that counts its passes of either mode; it looks at their numbers, so torch cannot run several in one."""

    forward_passes = 0
    reverse_passes = 0

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, weights):
        assert weights.isfinite().all()
        _Counted.reverse_passes += 1
        return weights * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx, direction):
        assert direction.isfinite().all()
        _Counted.forward_passes += 1
        return direction * ctx.saved_tensors[0].cos()


def passes(inputs, outputs, mode):
    """Passes (forward, reverse) that a Jacobian of this shape takes."""
    _Counted.forward_passes = _Counted.reverse_passes = 0
    weight = torch.randn(outputs, inputs, dtype=torch.float64)
    x = torch.randn(inputs, dtype=torch.float64)
    derivative = jacobian(lambda x: _Counted.apply(weight @ x), x, mode)
    close(derivative, (weight @ x).cos().unsqueeze(1) * weight)
    return _Counted.forward_passes, _Counted.reverse_passes


@pytest.mark.parametrize("mode", MODES)
def test_the_jacobian_is_that_of_calculus(mode):
    """f(x) = sin(Ax): J = diag(cos(Ax)) A."""
    A, x = torch.randn(4, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    close(jacobian(lambda x: torch.sin(A @ x), x, mode), torch.cos(A @ x).unsqueeze(1) * A)


@pytest.mark.parametrize("mode", MODES)
def test_the_hessian_is_that_of_calculus(mode):
    """f(x) = exp(a·x) + xᵀBx: H = aaᵀ exp(a·x) + B + Bᵀ, which is symmetric."""
    a, B = torch.randn(4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    x = torch.randn(4, dtype=torch.float64)
    curvature = hessian(lambda x: torch.exp(a @ x) + x @ B @ x, x, mode)
    close(curvature, torch.outer(a, a) * torch.exp(a @ x) + B + B.T)
    close(curvature, curvature.T)


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 6), (6, 1), (3, 4)])
def test_both_modes_agree_on_networks(inputs, outputs):
    f, x = net(inputs, outputs), torch.randn(inputs, dtype=torch.float64)
    first = [jacobian(f, x, mode) for mode in MODES]
    second = [hessian(f, x, mode) for mode in MODES]
    assert first[0].shape == (outputs, inputs)
    assert second[0].shape == (outputs, inputs, inputs)
    for by_mode in first[1:]:
        close(by_mode, first[0])
    for by_mode in second[1:]:
        close(by_mode, second[0])


def test_products_are_those_with_the_jacobian():
    """Forward mode gives Jv, reverse mode uᵀJ; the two are adjoint: u·(Jv) = (uᵀJ)·v."""
    f, x = net(4, 3), torch.randn(4, dtype=torch.float64)
    v, u = torch.randn(4, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    J = jacobian(f, x)
    (value, change), (same, gradient) = jvp(f, x, v), vjp(f, x, u)
    close(value, f(x))
    close(same, f(x))
    close(change, J @ v)
    close(gradient, u @ J)
    close(u @ change, gradient @ v)


def test_the_jacobian_of_a_composition_is_the_product_of_jacobians():
    f, g, x = net(3, 5), net(5, 2), torch.randn(3, dtype=torch.float64)
    close(jacobian(lambda x: g(f(x)), x), jacobian(g, f(x)) @ jacobian(f, x))


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_batch_are_differentiated_one_by_one(mode):
    f, x = net(3, 2), torch.randn(5, 3, dtype=torch.float64)
    close(jacobian(f, x, mode, rows=True), torch.stack([jacobian(f, row) for row in x]))
    close(hessian(f, x, mode, rows=True), torch.stack([hessian(f, row) for row in x]))
    whole = jacobian(f, x, mode)  # (5, 2, 5, 3): rows do not meet
    close(whole[torch.arange(5), :, torch.arange(5)], jacobian(f, x, mode, rows=True))
    assert whole[0, :, 1:].count_nonzero() == 0


@pytest.mark.parametrize("mode", MODES)
def test_axes_of_outputs_come_before_those_of_inputs(mode):
    x = torch.randn(2, 3, dtype=torch.float64)
    derivative = jacobian(lambda x: x.T @ x, x, mode)  # (3, 3, 2, 3)
    eye = torch.eye(3, dtype=torch.float64)
    # f_ab = Σ_d x_da x_db
    close(derivative, torch.einsum("ac,db->abdc", eye, x) + torch.einsum("bc,da->abdc", eye, x))


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 9), (9, 1), (4, 6), (12, 3)])
def test_forward_mode_takes_a_pass_per_input_and_reverse_per_output(inputs, outputs):
    assert passes(inputs, outputs, "forward") == (inputs, 0)
    assert passes(inputs, outputs, "reverse") == (0, outputs)
    assert sum(passes(inputs, outputs, "auto")) == min(inputs, outputs)


def test_rows_cost_the_passes_of_one():
    _Counted.forward_passes = _Counted.reverse_passes = 0
    x = torch.randn(50, 3, dtype=torch.float64)
    jacobian(_Counted.apply, x, "forward", rows=True)
    jacobian(_Counted.apply, x, "reverse", rows=True)
    assert (_Counted.forward_passes, _Counted.reverse_passes) == (3, 3)


def test_work_grows_with_inputs_forward_and_with_outputs_in_reverse():
    """Multiplications of f(x) = B tanh(Ax), whose passes are vectorised, for four times as many inputs or outputs."""

    def work(inputs, outputs, mode):
        A, B = torch.randn(32, inputs), torch.randn(outputs, 32)
        with FlopCounterMode(display=False) as counter:
            jacobian(lambda x: (B @ torch.tanh(A @ x.unsqueeze(1))).squeeze(1), torch.randn(inputs), mode)
        return counter.get_total_flops()

    assert work(64, 1, "forward") > 15 * work(64, 1, "reverse")
    assert work(1, 64, "reverse") > 15 * work(1, 64, "forward")
    assert work(64, 4, "forward") > 4 * work(16, 4, "forward")
    assert work(4, 64, "reverse") > 4 * work(4, 16, "reverse")


def test_gradients_of_a_loss_are_those_of_backward():
    f, x = net(6, 1), torch.randn(6, dtype=torch.float64, requires_grad=True)
    f(x).sum().backward()
    close(jacobian(lambda x: f(x).sum(), x.detach()), x.grad)


def test_answers_can_be_differentiated_again():
    """d/dx of the Jacobian of x³ is its Hessian."""
    x = torch.tensor([2.0], dtype=torch.float64)
    close(jacobian(lambda x: jacobian(lambda x: x**3, x), x), torch.full((1, 1, 1), 12.0, dtype=torch.float64))


def test_fitted_models_are_functions_of_their_rows():
    X = torch.randn(20, 3)
    y = (X[:, 0] > 0).long().numpy()
    model = Classifier(network=MLP((4,), activation="tanh"), inference=MAP(epochs=3), random_state=0).fit(X, y)
    derivative = jacobian(model, X[:5].numpy(), rows=True)
    close(derivative, jacobian(model.posterior_.module, X[:5], "forward", rows=True), 1e-5)
    line = Regressor().fit(X.double(), X.sum(1).double())
    close(jacobian(line, X[0])[0], torch.as_tensor(line.coef_), 1e-8)


def test_errors_say_what_would_do():
    with pytest.raises(SpecError, match="mode='backward' must be one of forward, reverse, auto"):
        jacobian(torch.sin, torch.zeros(1), "backward")
    with pytest.raises(DataError, match=r"direction has shape \(2,\); it must be that of x, \(1,\)"):
        jvp(torch.sin, torch.zeros(1), torch.zeros(2))
    with pytest.raises(DataError, match=r"weights has shape \(2,\); it must be that of f\(x\), \(1,\)"):
        vjp(torch.sin, torch.zeros(1), torch.zeros(2))
    with pytest.raises(DataError, match=r"x must be a tensor of real numbers .* found torch.int64"):
        jacobian(torch.sin, [1, 2])
    with pytest.raises(DataError, match="function must give a tensor with a row for each of x"):
        jacobian(torch.sum, torch.zeros(3, 2), rows=True)
    with pytest.raises(DataError, match="x must have rows"):
        jacobian(torch.sin, torch.tensor(1.0), rows=True)
    with pytest.raises(DataError, match="fitted Classifier or Regressor is needed; found a str"):
        module_of("net")
    several = Regressor(network=MLP((2,)), inference=Ensemble(2, by=MAP(epochs=1)), random_state=0)
    several.fit(torch.randn(8, 2), torch.randn(8))
    with pytest.raises(DataError, match=r"Regressor holds 2 parameter vectors; give one of them"):
        jacobian(several, torch.randn(1, 2))
    assert isinstance(module_of(several.posterior_.module_of(1)), nn.Module)
