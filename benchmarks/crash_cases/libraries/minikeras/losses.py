"""Losses by name, and what each of them expects of its targets."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

EPSILON = 1e-7


def categorical_crossentropy(targets: Any, outputs: Any) -> Any:
    return -(targets * torch.log(outputs.clamp(EPSILON, 1))).sum(-1).mean()


def sparse_categorical_crossentropy(targets: Any, outputs: Any) -> Any:
    return functional.nll_loss(torch.log(outputs.clamp(EPSILON, 1)), targets.reshape(-1).long())


def binary_crossentropy(targets: Any, outputs: Any) -> Any:
    return functional.binary_cross_entropy(outputs, targets)


def mean_squared_error(targets: Any, outputs: Any) -> Any:
    return functional.mse_loss(outputs, targets)


LOSSES = {
    function.__name__: function
    for function in (
        categorical_crossentropy,
        sparse_categorical_crossentropy,
        binary_crossentropy,
        mean_squared_error,
    )
}


def check_targets(targets: Any, loss: str, output_shape: tuple[int, ...]) -> None:
    """Raise ValueError if targets of this shape are nothing for the loss."""
    shape = tuple(targets.shape)
    if loss == "sparse_categorical_crossentropy":
        expected: tuple[int, ...] = (*output_shape[:-1], 1)
        fits = shape[1:] in {expected, output_shape[:-1]}
    else:
        expected = output_shape
        fits = shape[1:] == expected
    if len(shape) != len(expected) + 1 and not fits:
        raise ValueError(
            f"Error when checking target: expected the output to have {len(expected) + 1} dimensions,"
            f" but got array with shape {shape}"
        )
    if not fits:
        raise ValueError(
            f"A target array with shape {shape} was passed for an output of shape {(None, *output_shape)} while using"
            f" as loss `{loss}`. This loss expects targets to have the shape {(None, *expected)}."
        )
