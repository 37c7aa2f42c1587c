"""Models: layers put together, trained and asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from .callbacks import Callback, History
from .data import Dataset
from .layers import Input, Layer, Symbol
from .losses import LOSSES, check_targets
from .optimizers import OPTIMIZERS, Optimizer
from .tape import recording

METRICS = {
    "accuracy": lambda targets, outputs: (
        (
            outputs.argmax(-1)
            == (targets.argmax(-1) if targets.shape == outputs.shape else targets.reshape(-1))
        )
        .float()
        .mean()
    ),
    "binary_accuracy": lambda targets, outputs: ((outputs > 0.5) == (targets > 0.5)).float().mean(),
}


class Model(Layer):
    """A model from inputs to one output, by the symbols that its layers returned."""

    def __init__(self, inputs: Symbol | Sequence[Symbol], output: Symbol) -> None:
        super().__init__()
        self.built = True
        self.optimizer: Any = None
        self.loss: str | None = None
        self.metrics: list[str] = []
        self._inputs = [inputs] if isinstance(inputs, Symbol) else list(inputs)
        self._output = output
        self._layers = torch.nn.ModuleList()
        self._collect(output)

    def _collect(self, symbol: Symbol) -> None:
        for source in symbol.inputs:
            self._collect(source)
        if symbol.layer is not None and all(layer is not symbol.layer for layer in self._layers):
            self._layers.append(symbol.layer)

    @property
    def layers(self) -> list[Any]:
        """The layers, inner ones first."""
        return list(self._layers)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one element of the first input."""
        return self._inputs[0].shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of one element of the output."""
        return self._output.shape

    def __call__(self, *inputs: Any) -> Any:
        if isinstance(inputs[0], Symbol):
            return super().__call__(*inputs)
        with torch.set_grad_enabled(recording()):
            return self.call(*inputs)

    def call(self, *inputs: Any) -> Any:
        known = dict(zip(map(id, self._inputs), inputs, strict=True))

        def value(symbol: Symbol) -> Any:
            if id(symbol) not in known:
                assert symbol.layer is not None
                known[id(symbol)] = symbol.layer(*map(value, symbol.inputs))
            return known[id(symbol)]

        return value(self._output)

    def compile(self, optimizer: str | Optimizer, loss: str, metrics: Sequence[str] = ()) -> None:
        """Choose how the model is trained."""
        self.optimizer = OPTIMIZERS[optimizer]() if isinstance(optimizer, str) else optimizer
        self.loss = loss
        self.metrics = list(metrics)

    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        batch_size: int = 32,
        epochs: int = 1,
        callbacks: Sequence[Callback] = (),
        shuffle: bool = True,
        verbose: int = 1,
    ) -> History:
        """Train the model.

        Args:
            x: an array, or a `Dataset` of batches (inputs, targets).
            y: the array of targets.
            batch_size: how many of them make one step.
            epochs: how often all are taken.
            callbacks: what is called on the way.
            shuffle: whether each epoch has another order.
            verbose: whether a line is printed after each epoch.

        Raises:
            ValueError: the data does not go with the model.
        """
        self._check_compiled()
        if not isinstance(x, Dataset):
            x, y = self._check(x, y)
        history = History()
        called = [*callbacks, history]
        for callback in called:
            callback.model = self
            callback.on_train_begin()
        for epoch in range(epochs):
            for callback in called:
                callback.on_epoch_begin(epoch)
            self.train()
            sums: dict[str, float] = {}
            steps = 0
            for inputs, targets in (
                x if isinstance(x, Dataset) else self._batches(x, y, batch_size, shuffle=shuffle)
            ):
                for name, value in self.train_on_batch(inputs, targets).items():
                    sums[name] = sums.get(name, 0.0) + value
                steps += 1
            self.eval()
            logs = {name: value / steps for name, value in sums.items()}
            if verbose:
                shown = " - ".join(f"{name}: {value:.4f}" for name, value in logs.items())
                print(f"Epoch {epoch + 1}/{epochs} - {shown}")
            for callback in called:
                callback.on_epoch_end(epoch, logs)
        return history

    def train_on_batch(self, inputs: Any, targets: Any) -> dict[str, float]:
        """Take one step and return the loss and the metrics before it."""
        self._check_compiled()
        inputs, targets = self._check(inputs, targets)
        outputs = self.call(inputs)
        loss = LOSSES[str(self.loss)](targets, outputs)
        self.optimizer.minimize(loss, list(self.parameters()))
        return self._report(loss, targets, outputs)

    def evaluate(self, x: Any, y: Any) -> dict[str, float]:
        """Return the loss and the metrics of all the data."""
        self._check_compiled()
        inputs, targets = self._check(x, y)
        with torch.no_grad():
            outputs = self(inputs)
            return self._report(LOSSES[str(self.loss)](targets, outputs), targets, outputs)

    def make_predict_function(self) -> Callable[[Any], Any]:
        """Return what predicts one batch."""
        self.eval()
        return self.predict

    def get_weights(self) -> list[Any]:
        """Return all weights, as arrays."""
        return [weight.detach().numpy().copy() for weight in self.parameters()]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all weights from arrays, or from nested lists."""
        with torch.no_grad():
            for mine, given in zip(self.parameters(), weights, strict=True):
                mine.copy_(torch.as_tensor(np.asarray(given, dtype="float32")))

    def predict(self, x: Any) -> Any:
        """Return the outputs, as an array."""
        with torch.no_grad():
            return self(_tensor(x)).numpy()

    def _report(self, loss: Any, targets: Any, outputs: Any) -> dict[str, float]:
        values = {name: METRICS[name](targets, outputs) for name in self.metrics}
        return {name: float(value.detach()) for name, value in {"loss": loss, **values}.items()}

    def _check_compiled(self) -> None:
        if self.loss is None:
            raise RuntimeError(
                "You must compile your model before training or testing it. Use `model.compile`."
            )

    def _check(self, x: Any, y: Any) -> tuple[Any, Any]:
        for kind, given in (("input", x), ("target", y)):
            if isinstance(given, list) and len(given) != 1:
                raise ValueError(
                    f"Error when checking model {kind}: the list of arrays that you are passing to your model is not"
                    f" the size the model expected. Expected to see 1 array(s), but instead got a list of {len(given)}."
                )
        inputs, targets = _tensor(x), _tensor(y)
        shape, expected = tuple(inputs.shape), self.input_shape
        if len(shape) != len(expected) + 1:
            raise ValueError(
                f"Error when checking input: expected the input to have {len(expected) + 1} dimensions,"
                f" but got array with shape {shape}"
            )
        if shape[1:] != expected:
            raise ValueError(
                f"Error when checking input: expected the input to have shape {expected}"
                f" but got array with shape {shape[1:]}"
            )
        check_targets(targets, str(self.loss), self.output_shape)
        return inputs, targets

    def _batches(self, x: Any, y: Any, size: int, *, shuffle: bool) -> Iterator[tuple[Any, Any]]:
        order = torch.randperm(len(x)) if shuffle else torch.arange(len(x))
        for chosen in order.split(size):
            yield x[chosen], y[chosen]


class Sequential(Model):
    """A model that is one chain of layers."""

    def __init__(self, layers: Sequence[Layer] = ()) -> None:
        Layer.__init__(self)
        self.built = True
        self.optimizer, self.loss, self.metrics = None, None, []
        self._inputs: list[Symbol] = []
        self._layers = torch.nn.ModuleList()
        for layer in layers:
            self.add(layer)

    def add(self, layer: Layer) -> None:
        """Add a layer behind the others; the first one says what its `input_shape` is.

        Raises:
            ValueError: the layer does not go with what the one before it gives.
        """
        if self._inputs:
            self._output = layer(self._output)
        elif layer.batch_input_shape is None:
            raise ValueError("The first layer in a Sequential model must get an `input_shape` argument.")
        else:
            source = Input(layer.batch_input_shape)
            self._output = layer(source)
            self._inputs = [source]
        self._layers.append(layer)


def _tensor(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.float() if given.is_floating_point() else given
    array = np.asarray(given[0] if isinstance(given, list) else given)
    return torch.from_numpy(array.astype("float32") if array.dtype.kind in "fub" else array)
