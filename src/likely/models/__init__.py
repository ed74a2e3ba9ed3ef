"""What users fit. Each model opens on first use, so that one does not load what only another needs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..core.finding import found_by

if TYPE_CHECKING:
    from .bayesian_network.model import BayesianNetwork
    from .detection.detector import Detector
    from .forecasting.forecaster import Forecaster
    from .generative.autoencoder import Autoencoder
    from .generative.autoregressive import Autoregressive
    from .generative.diffusion import Diffusion
    from .generative.energy_model import EnergyModel
    from .generative.flow import Flow
    from .generative.gan import GAN
    from .generative.score_model import ScoreModel
    from .generative.vae import VAE
    from .hopfield import Hopfield
    from .kernel.gaussian_process import GaussianProcess
    from .kernel.kernel_ridge import KernelRidge
    from .kernel.support_vector import SupportVector
    from .language.masked_model import MaskedLanguageModel
    from .language.model import LanguageModel
    from .language.seq2seq import Seq2Seq
    from .language.word_vectors import WordVectors
    from .linear_gaussian.factor_analysis import FactorAnalysis
    from .linear_gaussian.kalman_filter import KalmanFilter
    from .linear_gaussian.pca import PCA
    from .markov.hidden_markov import HiddenMarkov
    from .mixtures.gaussian_mixture import GaussianMixture
    from .mixtures.kmeans import KMeans
    from .mixtures.mixture import Mixture
    from .mixtures.naive_bayes import NaiveBayes
    from .supervised.classifier import Classifier
    from .supervised.perceptron import Perceptron
    from .supervised.regressor import Regressor
    from .tables.frame_model import FrameModel
    from .tables.table_model import TableModel
    from .topics.latent_dirichlet import LatentDirichlet

__all__ = [
    "GAN",
    "PCA",
    "VAE",
    "Autoencoder",
    "Autoregressive",
    "BayesianNetwork",
    "Classifier",
    "Detector",
    "Diffusion",
    "EnergyModel",
    "FactorAnalysis",
    "Flow",
    "Forecaster",
    "FrameModel",
    "GaussianMixture",
    "GaussianProcess",
    "HiddenMarkov",
    "Hopfield",
    "KMeans",
    "KalmanFilter",
    "KernelRidge",
    "LanguageModel",
    "LatentDirichlet",
    "MaskedLanguageModel",
    "Mixture",
    "NaiveBayes",
    "Perceptron",
    "Regressor",
    "ScoreModel",
    "Seq2Seq",
    "SupportVector",
    "TableModel",
    "WordVectors",
]

_FILES = {
    "Autoencoder": "generative.autoencoder",
    "Autoregressive": "generative.autoregressive",
    "BayesianNetwork": "bayesian_network.model",
    "Classifier": "supervised.classifier",
    "Detector": "detection.detector",
    "Diffusion": "generative.diffusion",
    "EnergyModel": "generative.energy_model",
    "FactorAnalysis": "linear_gaussian.factor_analysis",
    "Flow": "generative.flow",
    "Forecaster": "forecasting.forecaster",
    "FrameModel": "tables.frame_model",
    "GAN": "generative.gan",
    "GaussianMixture": "mixtures.gaussian_mixture",
    "GaussianProcess": "kernel.gaussian_process",
    "HiddenMarkov": "markov.hidden_markov",
    "Hopfield": "hopfield",
    "KMeans": "mixtures.kmeans",
    "KalmanFilter": "linear_gaussian.kalman_filter",
    "KernelRidge": "kernel.kernel_ridge",
    "LanguageModel": "language.model",
    "LatentDirichlet": "topics.latent_dirichlet",
    "MaskedLanguageModel": "language.masked_model",
    "Mixture": "mixtures.mixture",
    "NaiveBayes": "mixtures.naive_bayes",
    "PCA": "linear_gaussian.pca",
    "Perceptron": "supervised.perceptron",
    "Regressor": "supervised.regressor",
    "ScoreModel": "generative.score_model",
    "Seq2Seq": "language.seq2seq",
    "SupportVector": "kernel.support_vector",
    "TableModel": "tables.table_model",
    "VAE": "generative.vae",
    "WordVectors": "language.word_vectors",
}


def find(name: str) -> type | None:
    """The model of this name, from its file; None if there is none.

    >>> find("Regressor")
    <class 'likely.models.supervised.regressor.Regressor'>
    """
    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name) if name in _FILES else None


found_by(find)


def __getattr__(name: str) -> Any:
    """A model, on first use."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return find(name)


def __dir__() -> list[str]:
    return sorted(__all__)
