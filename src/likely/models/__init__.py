"""What users fit. Each model opens on first use, so that one does not load what only another needs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bayesian_network import BayesianNetwork
    from .classifier import Classifier
    from .factor_analysis import FactorAnalysis
    from .gaussian_mixture import GaussianMixture
    from .gaussian_process import GaussianProcess
    from .hidden_markov import HiddenMarkov
    from .hopfield import Hopfield
    from .kalman_filter import KalmanFilter
    from .kernel_ridge import KernelRidge
    from .kmeans import KMeans
    from .latent_dirichlet import LatentDirichlet
    from .mixture import Mixture
    from .naive_bayes import NaiveBayes
    from .pca import PCA
    from .perceptron import Perceptron
    from .regressor import Regressor
    from .support_vector import SupportVector

__all__ = [
    "PCA",
    "BayesianNetwork",
    "Classifier",
    "FactorAnalysis",
    "GaussianMixture",
    "GaussianProcess",
    "HiddenMarkov",
    "Hopfield",
    "KMeans",
    "KalmanFilter",
    "KernelRidge",
    "LatentDirichlet",
    "Mixture",
    "NaiveBayes",
    "Perceptron",
    "Regressor",
    "SupportVector",
]

_FILES = {
    "BayesianNetwork": "bayesian_network",
    "Classifier": "classifier",
    "FactorAnalysis": "factor_analysis",
    "GaussianMixture": "gaussian_mixture",
    "GaussianProcess": "gaussian_process",
    "HiddenMarkov": "hidden_markov",
    "Hopfield": "hopfield",
    "KMeans": "kmeans",
    "KalmanFilter": "kalman_filter",
    "KernelRidge": "kernel_ridge",
    "LatentDirichlet": "latent_dirichlet",
    "Mixture": "mixture",
    "NaiveBayes": "naive_bayes",
    "PCA": "pca",
    "Perceptron": "perceptron",
    "Regressor": "regressor",
    "SupportVector": "support_vector",
}


def find(name: str) -> type | None:
    """The model of this name, from its file; None if there is none.

    >>> find("Regressor")
    <class 'likely.models.regressor.Regressor'>
    """
    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name) if name in _FILES else None


def __getattr__(name: str) -> Any:
    """A model, on first use."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return find(name)


def __dir__() -> list[str]:
    return sorted(__all__)
