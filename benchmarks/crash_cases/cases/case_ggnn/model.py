"""The network: messages along the edges, and a gate that takes them in."""

import torch
from torch import nn


class GGNN(nn.Module):
    """Gated graph network for graphs of one size."""

    def __init__(self, state_dim, steps):
        super().__init__()
        self.state_dim = state_dim
        self.steps = steps
        self.message = nn.Linear(state_dim, state_dim)
        self.gate = nn.GRUCell(state_dim, state_dim)
        self.out = nn.Linear(state_dim + 1, 2)

    def forward(self, edges, annotation):
        count, nodes, width = annotation.shape
        state = nn.functional.pad(annotation, (0, self.state_dim - width))
        for _ in range(self.steps):
            messages = edges.transpose(1, 2) @ self.message(state)
            flat = self.gate(messages.reshape(count * nodes, -1), state.reshape(count * nodes, -1))
            state = flat.reshape(count, nodes, -1)
        return self.out(torch.cat([state[:, -1], annotation[:, -1]], 1))
