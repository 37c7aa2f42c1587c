"""Layers: each knows its output's shape as soon as it is called with an input's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from . import initializers

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x,
    "relu": functional.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softmax": lambda x: functional.softmax(x, -1),
}


class Symbol:
    """What stands for a tensor while a model is put together.

    Attributes:
        shape: without the batch's dimension.
        layer: the layer that makes it, None for an input.
        inputs: what that layer gets.
    """

    def __init__(
        self, shape: Sequence[int], layer: Layer | None = None, inputs: tuple[Symbol, ...] = ()
    ) -> None:
        self.shape = tuple(shape)
        self.layer = layer
        self.inputs = inputs


def Input(shape: Sequence[int]) -> Symbol:  # noqa: N802 - the name that it has in Keras
    """Return the symbol of a model's input."""
    return Symbol(shape)


class Layer(torch.nn.Module):
    """The base of all layers: `build` makes the weights once the input's shape is known, `call` computes."""

    def __init__(self, *, input_shape: Sequence[int] | None = None) -> None:
        super().__init__()
        self.built = False
        self.batch_input_shape = input_shape

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Make the weights; `input_shape` is without the batch's dimension."""

    def call(self, *inputs: Any) -> Any:
        """Compute the output for one batch."""
        raise NotImplementedError

    def add_weight(self, name: str, shape: Sequence[int], initializer: str = "glorot_uniform") -> None:
        """Register a weight with its initial values."""
        self.register_parameter(name, torch.nn.Parameter(initializers.create(initializer, tuple(shape))))

    def __call__(self, *inputs: Any) -> Any:
        if not isinstance(inputs[0], Symbol):
            return self.call(*inputs)
        if not self.built:
            self.build(inputs[0].shape)
            self.built = True
        return Symbol(self._output_shape(inputs), self, inputs)

    def _output_shape(self, inputs: tuple[Symbol, ...]) -> tuple[int, ...]:
        training = self.training
        self.eval()
        try:
            with torch.no_grad():
                output = self.call(*(torch.zeros(1, *symbol.shape) for symbol in inputs))
        finally:
            self.train(training)
        return tuple(output.shape[1:])


class Dense(Layer):
    """A matrix and a bias, for the last dimension."""

    def __init__(
        self,
        units: int,
        *,
        activation: str = "linear",
        initializer: str = "glorot_uniform",
        input_shape: Sequence[int] | None = None,
    ) -> None:
        super().__init__(input_shape=input_shape)
        self.initializer = initializer
        self.units = units
        self.activation = ACTIVATIONS[activation]

    def build(self, input_shape: tuple[int, ...]) -> None:
        self.add_weight("kernel", (self.units, input_shape[-1]), self.initializer)
        self.add_weight("bias", (self.units,), "zeros")

    def call(self, inputs: Any) -> Any:
        return self.activation(functional.linear(inputs, self.kernel, self.bias))


class Conv2D(Layer):
    """A convolution of images whose channels come last; `padding` is "valid" or "same"."""

    def __init__(
        self,
        filters: int,
        kernel_size: int,
        *,
        padding: str = "valid",
        activation: str = "linear",
        input_shape: Sequence[int] | None = None,
    ) -> None:
        super().__init__(input_shape=input_shape)
        self.filters = filters
        self.kernel_size = kernel_size
        self.padding = padding
        self.activation = ACTIVATIONS[activation]

    def build(self, input_shape: tuple[int, ...]) -> None:
        smallest = min(input_shape[:2])
        if self.padding == "valid" and smallest < self.kernel_size:
            raise ValueError(
                f"Negative dimension size caused by subtracting {self.kernel_size} from {smallest} for a convolution"
                f" of inputs with shape {(None, *input_shape)}."
            )
        self.add_weight("kernel", (self.filters, input_shape[-1], self.kernel_size, self.kernel_size))
        self.add_weight("bias", (self.filters,), "zeros")

    def call(self, inputs: Any) -> Any:
        return self.activation(self.convolve(inputs, self.kernel))

    def convolve(self, inputs: Any, kernel: Any) -> Any:
        """Return the convolution with any kernel of the right shape, and the bias added."""
        images = inputs.permute(0, 3, 1, 2)
        return functional.conv2d(images, kernel, self.bias, padding=self.padding).permute(0, 2, 3, 1)


class MaxPooling2D(Layer):
    """The largest value of each square of points."""

    def __init__(self, pool_size: int = 2) -> None:
        super().__init__()
        self.pool_size = pool_size

    def call(self, inputs: Any) -> Any:
        return functional.max_pool2d(inputs.permute(0, 3, 1, 2), self.pool_size).permute(0, 2, 3, 1)


class GlobalAveragePooling2D(Layer):
    """The mean of each channel."""

    def call(self, inputs: Any) -> Any:
        return inputs.mean((1, 2))


class Flatten(Layer):
    """All dimensions but the batch's in one."""

    def call(self, inputs: Any) -> Any:
        return inputs.reshape(inputs.shape[0], -1)


class Reshape(Layer):
    """Another shape for each element of the batch."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def call(self, inputs: Any) -> Any:
        return inputs.reshape(inputs.shape[0], *self.shape)


class Activation(Layer):
    """One of `ACTIVATIONS`."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = ACTIVATIONS[name]

    def call(self, inputs: Any) -> Any:
        return self.function(inputs)


class Dropout(Layer):
    """Zeros in random places while the model is trained."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def call(self, inputs: Any) -> Any:
        return functional.dropout(inputs, self.rate, self.training)


class Add(Layer):
    """The sum of two inputs of one shape."""

    def call(self, first: Any, second: Any) -> Any:
        return first + second


class Lambda(Layer):
    """Any function without weights."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def call(self, inputs: Any) -> Any:
        return self.function(inputs)
