"""A small graph library after the manner of TensorFlow 1: variables that scopes own, and operations that run later.

An operation is a function of one batch. The scope that is current belongs to the thread. Whether variables are
made or reused is a flag that a scope inherits from the one around it, and that can be set but never be taken back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

AUTO_REUSE = "auto"

Operation = Callable[[Any], Any]
_current = threading.local()


class VariableScope:
    """A name that variables get before theirs, and whether they are reused."""

    def __init__(self, graph: Graph, name: str, reuse: bool | str) -> None:
        self.graph = graph
        self.name = name
        self._reuse = reuse

    def reuse_variables(self) -> None:
        """Reuse variables from now on."""
        self._reuse = True


class Graph:
    """Owns variables and operations."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.trainable: list[tuple[str, Any]] = []
        self.operations: list[str] = []
        self._root = VariableScope(self, "", False)
        self._names: dict[str, int] = {}

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the graph that everything goes to."""
        outer = getattr(_current, "scope", None)
        _current.scope = self._root
        try:
            yield self
        finally:
            _current.scope = outer

    def unique_name(self, name: str) -> str:
        """Return the name, with a number behind it if it has been asked for before."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name


def get_variable_scope() -> VariableScope:
    """Return the scope that is current in this thread."""
    return _current.scope  # type: ignore[no-any-return]


def get_default_graph() -> Graph:
    """Return the graph that is current in this thread."""
    return get_variable_scope().graph


@contextmanager
def device(_name: str) -> Iterator[None]:
    """Place operations on a device; there is only one."""
    yield


@contextmanager
def variable_scope(
    scope: str | VariableScope | None, default_name: str = "", reuse: bool | str | None = None
) -> Iterator[VariableScope]:
    """Enter a scope inside the current one, or again.

    Args:
        scope: its name, or a scope: its like is entered; None for a name that no other scope has.
        default_name: what that name begins with.
        reuse: True or `AUTO_REUSE`; otherwise as around it.
    """
    outer = get_variable_scope()
    if isinstance(scope, VariableScope):
        name, inherited = scope.name, scope._reuse
    else:
        inner = outer.graph.unique_name(default_name) if scope is None else scope
        name, inherited = f"{outer.name}{inner}/", outer._reuse
    _current.scope = VariableScope(outer.graph, name, reuse or inherited)
    try:
        yield _current.scope
    finally:
        _current.scope = outer


def get_variable(name: str, initial: Any, *, trainable: bool = True) -> Any:
    """Return a variable of the current scope, a new one or the one that is there.

    Raises:
        ValueError: it is there and is not to be reused, or is not there and is.
    """
    scope = get_variable_scope()
    graph, full = scope.graph, f"{scope.name}{name}".rstrip("/")
    if full in graph.variables and scope._reuse is False:
        raise ValueError(f"Variable {full} already exists, disallowed. Did you mean to set reuse=AUTO_REUSE?")
    if full not in graph.variables:
        if scope._reuse is True:
            raise ValueError(
                f"Variable {full} does not exist, or was not created with get_variable()."
                " Did you mean to set reuse=AUTO_REUSE in variable_scope?"
            )
        graph.variables[full] = initial().requires_grad_(trainable)
        if trainable:
            graph.trainable.append((full, graph.variables[full]))
    return graph.variables[full]


def trainable_variables() -> list[tuple[str, Any]]:
    """Return names and values of what is trained."""
    return list(get_default_graph().trainable)


class GradientDescentOptimizer:
    """Plain gradient descent."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def compute_gradients(self, loss: Operation) -> Operation:
        """Return the operation that gives the gradients of a loss."""
        weights = [value for _, value in trainable_variables()]
        get_default_graph().operations.append("gradients")
        return lambda batch: torch.autograd.grad(loss(batch), weights)

    def apply_gradients(self, gradients: Operation) -> Operation:
        """Return the operation that takes a step."""
        weights = [value for _, value in trainable_variables()]
        get_default_graph().operations.append("apply_gradients")

        def apply(batch: Any) -> None:
            computed = gradients(batch)
            with torch.no_grad():
                for weight, gradient in zip(weights, computed, strict=True):
                    weight.sub_(self.learning_rate * gradient)

        return apply


class ExponentialMovingAverage:
    """Keeps a slowly moving copy of each variable, in a variable of its own."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.slots: dict[str, Any] = {}

    def apply(self, variables: Sequence[tuple[str, Any]]) -> Operation:
        """Make the variables and return the operation that moves them."""
        for name, value in variables:
            with variable_scope(None, default_name=f"{name}/ExponentialMovingAverage"):
                self.slots[name] = get_variable("", lambda: value.detach().clone(), trainable=False)
        get_default_graph().operations.append("moving_average")

        def move(_batch: Any) -> None:
            with torch.no_grad():
                for name, value in variables:
                    self.slots[name].lerp_(value, 1 - self.decay)

        return move


def batch(
    placeholder: Any, examples: Callable[[int], tuple[Any, int]], size: int
) -> tuple[Operation, Operation]:
    """Return the operations that give images and labels of a batch, which must have one shape.

    Args:
        placeholder: a buffer of the shape that each image has.
        examples: gives image and label by their number.
        size: how many there are in a batch.

    Raises:
        ValueError: the placeholder's shape is not known.
    """
    points = placeholder.numel()
    get_default_graph().operations.append("batch")

    def images(number: int) -> Any:
        return torch.stack([examples(number * size + i)[0].reshape(points) for i in range(size)])

    def labels(number: int) -> Any:
        return torch.tensor([examples(number * size + i)[1] for i in range(size)])

    return images, labels
