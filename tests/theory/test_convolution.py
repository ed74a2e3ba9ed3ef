import itertools

import numpy as np
import pytest
import torch
from scipy import linalg, signal

from likely.core.errors import DataError, SpecError
from likely.networks.layers.conv import Conv
from likely.theory.convolution import fourier, output_size, parameter_count, toeplitz

LAYER_PADDINGS = ("valid", "zero", "circular", "reflect")


def noise(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("padding", LAYER_PADDINGS)
@pytest.mark.parametrize(("kernel", "stride", "dilation"), list(itertools.product((1, 2, 3), (1, 2), (1, 2))))
@pytest.mark.parametrize("dims", [1, 2])
def test_the_matrix_gives_what_the_layer_gives(dims, kernel, stride, dilation, padding):
    """T x = w ⋆ x, for correlation; for convolution the kernel is turned round."""
    conv = Conv(1, 1, kernel, dims=dims, stride=stride, dilation=dilation, padding=padding, bias=False).double()
    size = (9,) if dims == 1 else (6, 7)
    x = noise(*size)
    weight = conv.weight.detach()[0, 0]
    choices = {"padding": padding, "stride": stride, "dilation": dilation}
    direct = conv(x[None, None])[0, 0].ravel()
    matrix = toeplitz(weight, size, kind="correlation", **choices)
    torch.testing.assert_close(matrix @ x.ravel(), direct, atol=1e-10, rtol=0)
    turned = weight.flip(tuple(range(dims)))
    torch.testing.assert_close(toeplitz(turned, size, **choices) @ x.ravel(), direct, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("ours", "theirs"), [("valid", "valid"), ("full", "full")])
def test_it_agrees_with_scipy(ours, theirs):
    x, w = noise(6, 7), noise(3, 2)
    for kind, peer in (("convolution", signal.convolve2d), ("correlation", signal.correlate2d)):
        filtered = toeplitz(w, (6, 7), kind=kind, padding=ours) @ x.ravel()
        np.testing.assert_allclose(filtered, peer(x, w, theirs).ravel(), atol=1e-10)
    series = toeplitz(w[:, 0], 6, padding=ours) @ x[:, 0]
    np.testing.assert_allclose(series, np.convolve(x[:, 0], w[:, 0], theirs), atol=1e-10)


def test_it_is_a_toeplitz_matrix_and_round_a_circle_a_circulant_one():
    w = noise(3)
    full = toeplitz(w, 5, padding="full").numpy()
    np.testing.assert_allclose(full, linalg.toeplitz(np.r_[w, np.zeros(4)], np.r_[w[0], np.zeros(4)]))
    np.testing.assert_allclose(toeplitz(w, 5, padding="circular"), linalg.circulant([w[1], w[2], 0, 0, w[0]]))


def test_images_have_toeplitz_blocks():
    """Separable kernels make Kronecker products: T(u vᵀ) = T(u) ⊗ T(v)."""
    u, v = noise(3), noise(2)
    torch.testing.assert_close(toeplitz(torch.outer(u, v), (5, 4)), torch.kron(toeplitz(u, 5), toeplitz(v, 4)))


@pytest.mark.parametrize("kind", ["convolution", "correlation"])
@pytest.mark.parametrize(("size", "kernel"), [((8,), (3,)), ((9,), (4,)), ((6, 7), (3, 2)), ((3,), (5,))])
@pytest.mark.parametrize("dilation", [1, 2])
def test_fourier_is_the_circular_matrix(size, kernel, dilation, kind):
    x, w = noise(*size), noise(*kernel)
    matrix = toeplitz(w, size, kind=kind, padding="circular", dilation=dilation)
    filtered = fourier(x, w, kind=kind, dilation=dilation)
    torch.testing.assert_close(filtered.ravel(), matrix @ x.ravel(), atol=1e-10, rtol=0)


def test_the_convolution_theorem():
    """F(w ∗ x) = F(w) F(x): with the kernel's first number over each position, where ours is its middle."""
    x, w = noise(10), noise(5)
    theorem = torch.fft.ifft(torch.fft.fft(w, 10) * torch.fft.fft(x)).real
    torch.testing.assert_close(fourier(x, w).roll(2), theorem, atol=1e-10, rtol=0)


def test_fourier_modes_are_eigenvectors_of_circular_convolution():
    w = noise(3)
    matrix = toeplitz(w, 8, padding="circular").to(torch.complex128)
    modes = torch.fft.ifft(torch.eye(8, dtype=torch.complex128))
    values = torch.fft.fft(matrix[:, 0])
    torch.testing.assert_close(matrix @ modes, modes * values, atol=1e-10, rtol=0)


def test_the_transpose_of_convolution_is_correlation():
    w = noise(3, 3)
    convolution = toeplitz(w, (5, 6), padding="circular")
    torch.testing.assert_close(convolution.T, toeplitz(w, (5, 6), kind="correlation", padding="circular"))


def test_the_textbook_numbers():
    assert output_size(32, 5, padding=2) == 32
    assert parameter_count(3, 10, 5) == 760


def test_the_example_of_the_lecture():
    """[[0, 1], [2, 3]] over the numbers 0 … 8."""
    filtered = toeplitz([[0, 1], [2, 3]], (3, 3), kind="correlation") @ torch.arange(9.0, dtype=torch.float64)
    assert filtered.tolist() == [19, 25, 37, 43]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: toeplitz([1.0], (3, 3)), DataError, r"kernel has 1 axes, but size=\(3, 3\) has 2"),
        (lambda: toeplitz([[[1.0]]], 3), DataError, "kernel must have one axis"),
        (lambda: toeplitz([], 3), DataError, "kernel must have one axis"),
        (lambda: toeplitz([1.0], 3, padding="same"), SpecError, "padding='same' must be one of valid, zero, full"),
        (lambda: toeplitz([1.0], 3, kind="cross"), SpecError, "kind='cross' must be one of convolution, correlation"),
        (lambda: toeplitz([1.0, 2.0], 1), SpecError, "needs 2 positions or more"),
        (lambda: toeplitz([1.0] * 5, 2, padding="reflect"), SpecError, "a mirror image of 2 positions needs one more"),
        (lambda: fourier([1.0], [[1.0]]), DataError, "kernel has 2 axes, but x has 1"),
    ],
)
def test_what_cannot_be_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
