"""What holds for every kernel there is: a new one joins by being defined."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec, registered
from likely.kernels import RBF, Constant, Kernel, Linear, Matern, Periodic, Polynomial, RationalQuadratic, White

KERNELS = {name: cls.example() for name, cls in registered(Kernel).items() if cls.__module__.startswith("likely.")}
MORE = {
    "Matern 0.5": Matern(0.7, smoothness=0.5),
    "Matern 1.5": Matern(0.7, smoothness=1.5),
    "RBF ard": RBF((0.5, 2.0, 1.0)),
    "deep algebra": 2.0 * (RBF(ard=True) + Linear(0.3)) * Periodic(period=3.0) + White(0.1) + 0.5,
}
ALL = KERNELS | MORE
everyone = pytest.mark.parametrize("name", ALL)


def rows(count=12, columns=3, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, columns)))


def built(name, x):
    torch.manual_seed(0)
    return ALL[name].build(x).double()


@pytest.mark.sensitive
@everyone
@settings(max_examples=15)
@given(seed=st.integers(0, 2**31), count=st.integers(1, 25), spread=st.sampled_from([1e-3, 1.0, 30.0]))
def test_matrices_are_symmetric_and_positive_semidefinite(name, seed, count, spread):
    x = spread * rows(count, seed=seed)
    x[count // 2 :] = x[: count - count // 2].clone()  # some rows twice
    module = built(name, x)
    with torch.no_grad():
        K = module(x)
    assert K.dtype == torch.float64
    assert torch.equal(K, K.mT)
    assert float(torch.linalg.eigvalsh(K)[0]) >= -1e-10 * max(1.0, float(K.diagonal().max()))


@everyone
def test_the_diagonal_is_that_of_the_matrix(name):
    """To 1e-8: where a kernel knows rows by the angle between them, an angle near 0 keeps half of the digits."""
    x = rows()
    module = built(name, x)
    torch.testing.assert_close(module.diagonal(x), module(x).diagonal(), rtol=1e-8, atol=1e-8)


@everyone
def test_other_rows_give_the_blocks_of_the_joint_matrix(name):
    """Between different sets of rows k is what it is in the matrix of all of them; the noise of White is not shared."""
    x = rows(14)
    module = built(name, x)
    joint = module(x)
    torch.testing.assert_close(module(x[:5], x[5:]), joint[:5, 5:], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(module(x[5:], x[:5]), joint[5:, :5], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(module(x[5:]), joint[5:, 5:], rtol=1e-10, atol=1e-12)


@everyone
def test_a_matrix_can_be_written_to(name):
    """Models add noise to the diagonal in place."""
    x = rows(4)
    with torch.no_grad():
        K = built(name, x)(x)
        before = K.clone()
        K.diagonal().add_(1.0)
    torch.testing.assert_close(K, before + torch.eye(4, dtype=torch.float64))


@everyone
def test_gradients_are_those_of_differences_also_at_equal_rows(name):
    x = rows(5)
    x[3] = x[1]
    module = built(name, x)
    names = [key for key, value in module.named_parameters() if value.requires_grad]
    if not names:
        return
    start = [value.detach().clone().requires_grad_() for key, value in module.named_parameters() if key in names]

    def matrix(*values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(module, state, (x,)), torch.func.functional_call(module, state, (x, x[:2]))

    assert torch.autograd.gradcheck(matrix, start)


@everyone
def test_a_kernel_goes_to_json_and_text_and_back(name):
    kernel = ALL[name]
    assert Spec.from_json(json.loads(json.dumps(kernel.to_json()))) == kernel
    assert Kernel.parse(repr(kernel)) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(kernel) == hash(Kernel.parse(repr(kernel)))


@everyone
def test_what_was_not_learned_is_what_was_given(name):
    """`ard` alone becomes as many numbers as there are columns."""
    kernel = ALL[name]
    spec = kernel.build(rows()).spec()
    assert type(spec) is type(kernel)
    assert spec.build(rows()).spec() == spec
    if "ard=True" not in repr(kernel):
        assert spec == kernel


@everyone
def test_the_spec_of_a_module_with_its_state_makes_the_same_matrix(name):
    """Numbers that were learned stand in the spec; weights of a network in the module's state."""
    x = rows()
    module = built(name, x)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    again = module.spec().build(x).double()
    again.load_state_dict(module.state_dict())
    assert torch.equal(again(x), module(x))
    if "network" not in ALL[name].get_params():
        torch.testing.assert_close(module.spec().build(x).double()(x), module(x), rtol=1e-12, atol=1e-12)


@everyone
def test_building_leaves_the_global_seed_alone(name):
    before = torch.get_rng_state()
    first = ALL[name].matrix(rows())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(ALL[name].matrix(rows()), first)


VECTORS = [RBF(), Matern(), RationalQuadratic(), Periodic(), Linear(), Polynomial()]


@pytest.mark.parametrize("kernel", VECTORS, ids=repr)
def test_kernels_of_columns_refuse_other_rows(kernel):
    with pytest.raises(DataError, match=rf"{type(kernel).__name__} compares vectors: rows \(n, d\).*\(4, 2, 2\)"):
        kernel.matrix(np.zeros((4, 2, 2)))


@pytest.mark.parametrize("kernel", [*VECTORS, Constant(), White()], ids=repr)
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), True, "far"])
def test_numbers_must_be_positive(kernel, value):
    for name in ("lengthscale", "variance", "alpha", "offset", "period"):
        if name in kernel.get_params():
            with pytest.raises(SpecError, match=f"{name} must be a positive number"):
                kernel.replace(**{name: value})


def test_rows_of_a_matrix_are_checked():
    with pytest.raises(DataError, match=r"x has shape \(2,\); a kernel needs rows: \(n, d\)"):
        RBF().matrix([0.0, 1.0])
    with pytest.raises(DataError, match=r"x has shape \(1, 2\) and other \(1, 1\); rows must be alike"):
        RBF().matrix([[0.0, 1.0]], [[1.0]])
    with pytest.raises(DataError, match=r"RBF\(lengthscale=\(1.0, 2.0\)\) has 2 length scales, but rows of 3 columns"):
        RBF((1.0, 2.0)).matrix(np.zeros((2, 3)))


@pytest.mark.parametrize("name", KERNELS | {"affine": 2.0 * Linear(0.3) + 0.5, "deep algebra": MORE["deep algebra"]})
def test_a_kernel_is_affine_where_its_functions_are_lines(name):
    kernel = {"affine": 2.0 * Linear(0.3) + 0.5}.get(name) or ALL[name]
    torch.manual_seed(0)
    x, along = rows(5), rows(5, seed=1)
    module = kernel.build(x).double()
    with torch.no_grad():
        bend = module(x + along, x) - 2 * module(x, x.clone()) + module(x - along, x)
    assert kernel.affine == bool(bend.abs().max() < 1e-10)
