"""Deep: a kernel of what a network makes of the rows.

k(x, x′) = inner(g(x), g(x′)),   g a network

Where a kernel's hyperparameters are learned, the weights of g are learned with them: the network finds features in
which near rows have near targets.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.random import isolated
from ..core.spec import require
from ..networks import MLP, Network
from ..networks.layers.norm import ReferenceBatch, VirtualBatchNorm
from .base import Kernel, KernelModule
from .stationary import RBF

__all__ = ["Deep"]

CHANCE = (nn.modules.dropout._DropoutNd,)
BATCH = (nn.modules.batchnorm._BatchNorm, ReferenceBatch, VirtualBatchNorm)


class Deep(Kernel):
    """Deep(network=MLP((64, 64)), kernel=RBF(), features=2): `kernel` of the `features` outputs of `network`.

    The weights start from `random_state`, so that the spec is one kernel. What they become is kept by the model that
    learns them (the `state_dict` of its kernel module); `spec()` gives the hyperparameters of the inner kernel alone.

    >>> rows = [[0.0, 1.0], [0.0, 1.0], [2.0, -1.0]]
    >>> Deep(MLP((8,))).matrix(rows)[0] == 1      # equal rows have equal features
    tensor([ True,  True, False])
    """

    network: Network = MLP((64, 64))
    kernel: Kernel = RBF()
    features: int = 2
    random_state: int = 0

    @classmethod
    def example(cls) -> Deep:
        """A small one."""
        return cls(MLP((4,), activation="tanh"))

    def validate(self) -> None:
        require(self.features >= 1, self, "features", "an integer above 0")
        require(0 <= self.random_state < 2**63, self, "random_state", "an integer, 0 or more")

    def build(self, x: Tensor) -> KernelModule:
        with isolated(self.random_state):
            network = self.network.build(tuple(x.shape[1:]), self.features)
        _refuse_company(network)
        module = _Deep(self, network.double(), x)
        return module.to(x.device)


class _Deep(KernelModule):
    def __init__(self, kernel: Deep, network: nn.Module, x: Tensor) -> None:
        super().__init__()
        self.kernel, self.network = kernel, network
        self.inner = kernel.kernel.build(self._features(x[:1].double()).detach())

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.inner(self._features(x), None if other is None else self._features(other))

    def diagonal(self, x: Tensor) -> Tensor:
        return self.inner.diagonal(self._features(x))

    def _features(self, x: Tensor) -> Tensor:
        return self.network(x).flatten(1)

    def spec(self) -> Kernel:
        return self.kernel.replace(kernel=self.inner.spec())


def _refuse_company(network: nn.Module) -> None:
    """A covariance of two rows must not depend on chance, or on the rows that they are seen with."""
    for layer in network.modules():
        if isinstance(layer, CHANCE + BATCH):
            why = "draws at random" if isinstance(layer, CHANCE) else "depends on the other rows of a batch"
            raise SpecError(
                f"Deep: the network has a {type(layer).__name__} layer, which {why}, so that k(x, x′) would not be one "
                'number; use dropout=0 and norm=None, "layer" or "weight".'
            )
