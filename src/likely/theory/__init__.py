"""What can be proved of learning, and measured beside the proof.

bounds                   how far the error on new rows can be from the error seen: Hoeffding, VC, PAC-Bayes
capacity                 Cover's count, the capacity 2d, Barron's rate
convergence              how fast descent must come near a minimum, and how fast it does
convolution              convolutions as Toeplitz matrices and as products of Fourier transforms; sizes and parameters
differentiate            derivatives by forward and by reverse mode: JVP, VJP, Jacobian, Hessian
double_descent           the error on new rows falls, peaks where a model can just repeat its data, and falls again
explain                  why a model said what it did: gradients, occlusion, attention, Shapley values
gradient_health          what each layer sends forward and gets back; whether input gradients are shattered
implicit_regularisation  what finite steps, mini-batches and stopping early add to a loss
linear_regions           the exact linear regions of ReLU networks on a line or in a plane, and their bounds
receptive_field          what part of an image a unit sees, by arithmetic and by gradients
spectral                 Laplacians, the graph Fourier transform, filters of graphs
tangent                  networks near their start: linearised, trained by the flow of a kernel, which moves how far
weisfeiler_lehman        colours that tell graphs apart, and what graph networks cannot
"""

from __future__ import annotations

from . import explain
from .bounds import (
    binary_kl,
    hoeffding_bound,
    kl_inverse,
    pac_bayes_bound,
    sample_size,
    sauer,
    vc_bound,
    vc_dimension,
)
from .capacity import barron_bound, capacity, cover_count, separable_fraction
from .convergence import (
    Convergence,
    convergence,
    gradient_descent_rate,
    gradient_variance,
    momentum_rate,
    quadratic_convergence,
)
from .convolution import fourier, output_size, parameter_count, toeplitz
from .differentiate import hessian, jacobian, jvp, vjp
from .double_descent import DoubleDescent, RandomFeatures, double_descent, gaussian_descent
from .gradient_health import Autocorrelation, GradientHealth, gradient_autocorrelation, gradient_health
from .implicit_regularisation import (
    ImplicitRegularisation,
    descent_filter,
    early_stopping,
    flow,
    implicit_regularisation,
    minimum_norm,
    modified_loss,
    ridge_filter,
    stochastic_modified_loss,
)
from .linear_regions import (
    LineRegions,
    PlaneRegions,
    RegionBounds,
    montufar,
    regions_in_plane,
    regions_on_line,
    zaslavsky,
)
from .receptive_field import Field, receptive_field, receptive_gradient, receptive_span
from .spectral import (
    Spectrum,
    convolve,
    graph_fourier,
    graph_laplacian,
    graph_spectrum,
    inverse_graph_fourier,
    polynomial_filter,
    spectral_filter,
)
from .tangent import gradient_flow, kernel_drift, linearise
from .weisfeiler_lehman import same_colours, weisfeiler_lehman

__all__ = [
    "Autocorrelation",
    "Convergence",
    "DoubleDescent",
    "Field",
    "GradientHealth",
    "ImplicitRegularisation",
    "LineRegions",
    "PlaneRegions",
    "RandomFeatures",
    "RegionBounds",
    "Spectrum",
    "barron_bound",
    "binary_kl",
    "capacity",
    "convergence",
    "convolve",
    "cover_count",
    "descent_filter",
    "double_descent",
    "early_stopping",
    "explain",
    "flow",
    "fourier",
    "gaussian_descent",
    "gradient_autocorrelation",
    "gradient_descent_rate",
    "gradient_flow",
    "gradient_health",
    "gradient_variance",
    "graph_fourier",
    "graph_laplacian",
    "graph_spectrum",
    "hessian",
    "hoeffding_bound",
    "implicit_regularisation",
    "inverse_graph_fourier",
    "jacobian",
    "jvp",
    "kernel_drift",
    "kl_inverse",
    "linearise",
    "minimum_norm",
    "modified_loss",
    "momentum_rate",
    "montufar",
    "output_size",
    "pac_bayes_bound",
    "parameter_count",
    "polynomial_filter",
    "quadratic_convergence",
    "receptive_field",
    "receptive_gradient",
    "receptive_span",
    "regions_in_plane",
    "regions_on_line",
    "ridge_filter",
    "same_colours",
    "sample_size",
    "sauer",
    "separable_fraction",
    "spectral_filter",
    "stochastic_modified_loss",
    "toeplitz",
    "vc_bound",
    "vc_dimension",
    "vjp",
    "weisfeiler_lehman",
    "zaslavsky",
]
