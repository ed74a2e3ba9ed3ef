"""The modules networks are made of: plain `torch.nn.Module`s and functions, usable without the rest of Likely."""

from __future__ import annotations

from ...data.sparse import SparseMatrix
from .activation import (
    ACTIVATIONS,
    Erf,
    Sine,
    activation,
    gain,
)
from .attention import (
    SCORES,
    AdditiveScore,
    GeneralScore,
    MultiHeadAttention,
    attend,
    attention_weights,
)
from .attentive import AttentiveDecoder
from .conv import (
    PADDINGS,
    ChannelNorm,
    Conv,
    output_size,
    parameter_count,
)
from .dropout import Dropout, dropped
from .encoder import Encoder, EncoderBlock
from .graph import (
    AGGREGATES,
    LAPLACIANS,
    adjacency,
    aggregate,
    laplacian,
    normalised_adjacency,
    readout,
    segment_softmax,
)
from .graph_layers import (
    ChebyshevConvolution,
    GraphAttention,
    GraphConvolution,
    MessagePassingLayer,
    NodeLinear,
)
from .init import (
    INITS,
    glorot,
    he,
    he_average,
    initialise,
    lecun,
    orthogonal,
)
from .linear_attention import LinearAttention, elu_plus_one, linear_attend
from .masked import MaskedLinear, MaskedMLP, hidden_degrees, random_orders
from .norm import (
    NORMS,
    BatchNorm,
    LayerNorm,
    ReferenceBatch,
    VirtualBatchNorm,
    WeightNorm,
    norm,
)
from .positions import LearnedPositions, RelativePositions, SinusoidalPositions, sinusoids
from .recurrent import GRULayer, LSTMLayer, RNNLayer, reversed_steps
from .resample import (
    DOWNSAMPLES,
    UPSAMPLES,
    Downsample,
    PositionMean,
    TransposedConv,
    Unpool,
    Upsample,
    max_with_indices,
)
from .residual import Concatenate, Residual, ZeroResidual
from .scan import scan
from .sets import POOLS, EquivariantLinear
from .standardise import Standardise, statistics
from .steps import (
    Embedding,
    at_each,
    pooled,
    step_features,
    steps_of,
)
from .walk import Walk

__all__ = [
    "ACTIVATIONS",
    "AGGREGATES",
    "DOWNSAMPLES",
    "INITS",
    "LAPLACIANS",
    "NORMS",
    "PADDINGS",
    "POOLS",
    "SCORES",
    "UPSAMPLES",
    "AdditiveScore",
    "AttentiveDecoder",
    "BatchNorm",
    "ChannelNorm",
    "ChebyshevConvolution",
    "Concatenate",
    "Conv",
    "Downsample",
    "Dropout",
    "Embedding",
    "Encoder",
    "EncoderBlock",
    "EquivariantLinear",
    "Erf",
    "GRULayer",
    "GeneralScore",
    "GraphAttention",
    "GraphConvolution",
    "LSTMLayer",
    "LayerNorm",
    "LearnedPositions",
    "LinearAttention",
    "MaskedLinear",
    "MaskedMLP",
    "MessagePassingLayer",
    "MultiHeadAttention",
    "NodeLinear",
    "PositionMean",
    "RNNLayer",
    "ReferenceBatch",
    "RelativePositions",
    "Residual",
    "Sine",
    "SinusoidalPositions",
    "SparseMatrix",
    "Standardise",
    "TransposedConv",
    "Unpool",
    "Upsample",
    "VirtualBatchNorm",
    "Walk",
    "WeightNorm",
    "ZeroResidual",
    "activation",
    "adjacency",
    "aggregate",
    "at_each",
    "attend",
    "attention_weights",
    "dropped",
    "elu_plus_one",
    "gain",
    "glorot",
    "he",
    "he_average",
    "hidden_degrees",
    "initialise",
    "laplacian",
    "lecun",
    "linear_attend",
    "max_with_indices",
    "norm",
    "normalised_adjacency",
    "orthogonal",
    "output_size",
    "parameter_count",
    "pooled",
    "random_orders",
    "readout",
    "reversed_steps",
    "scan",
    "segment_softmax",
    "sinusoids",
    "statistics",
    "step_features",
    "steps_of",
]
