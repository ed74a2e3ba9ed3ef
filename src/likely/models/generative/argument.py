"""Arguments whose names are verbs elsewhere: set, they are arguments; asked for, they are no method."""

from __future__ import annotations

from typing import Any

from ...core.draws import Refused

__all__ = ["Argument"]


class Argument(Refused):
    """An argument under the name of a verb that the model does not have, so `hasattr` tells tools the truth.

    >>> class Model:
    ...     predict = Argument("it is what the network answers")
    >>> model = Model()
    >>> model.predict = "noise"
    >>> vars(model)["predict"], hasattr(model, "predict")
    ('noise', False)
    """

    def __set__(self, model: Any, value: Any) -> None:
        vars(model)[self.name] = value
