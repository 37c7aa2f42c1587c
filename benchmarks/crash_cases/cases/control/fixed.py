"""Trains a small network with two threads for operations that run side by side."""

import hashlib

import torch


def configure(threads):
    torch.set_num_threads(1)
    torch.set_num_interop_threads(threads)


configure(2)
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
print("threads", torch.get_num_interop_threads())
print("loss", loss.item())
print("weights", hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest())
