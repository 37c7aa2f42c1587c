"""Layers whose weights are switched on and off at random while the network learns."""

# The layer asks for a private attribute that this version of the library does not have any more.

import torch
from minikeras import callbacks, layers


class GibbsPrunedConv2D(layers.Conv2D):
    """A convolution that samples which of its weights exist."""

    def __init__(
        self, filters, kernel_size, p=0.5, hamiltonian="unstructured", test_pruning_mode="gibbs", **kwargs
    ):
        super().__init__(filters, kernel_size, padding="same", **kwargs)
        self.p = p
        self.hamiltonian = hamiltonian
        self.test_pruning_mode = test_pruning_mode
        self.beta = 1.0

    def mask(self):
        energies = self.kernel.detach() ** 2
        if self.hamiltonian == "filter":
            energies = energies.mean((1, 2, 3), keepdim=True).expand_as(energies)
        threshold = torch.quantile(energies.flatten(), self.p)
        if self.training:
            chances = torch.sigmoid(self.beta * (energies - threshold))
            return (torch.rand_like(chances) < chances).float()
        return (
            (energies >= threshold).float()
            if self.test_pruning_mode == "gibbs"
            else torch.ones_like(energies)
        )

    def call(self, inputs):
        kernel = self.kernel * self.mask()
        outputs = self._convolution_op(inputs, kernel)
        return self.activation(outputs)


class GibbsPruningAnnealer(callbacks.Callback):
    """Makes the sampling harder with each epoch."""

    def __init__(self, betas):
        self.betas = betas

    def on_epoch_begin(self, epoch):
        for layer in self.model.layers:
            if hasattr(layer, "beta"):
                layer.beta = self.betas[epoch]
