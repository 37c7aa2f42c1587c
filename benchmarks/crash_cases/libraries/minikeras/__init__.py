"""A small deep-learning library after the manner of Keras, on PyTorch.

It plays the library in the crash cases: models are put together layer by layer, each shape is inferred as soon
as a layer is added, and `fit` runs the training loop, checks what it is given, and calls the user back.
"""

from . import backend, callbacks, data, datasets, initializers, layers, losses, optimizers, utils
from .models import Model, Sequential
from .tape import GradientTape

__all__ = [
    "GradientTape",
    "Model",
    "Sequential",
    "backend",
    "callbacks",
    "data",
    "datasets",
    "initializers",
    "layers",
    "losses",
    "optimizers",
    "utils",
]
