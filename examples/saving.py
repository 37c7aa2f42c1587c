"""A training program as many are: one module from top to bottom. The folder for its checkpoints does not exist."""

import tempfile

import torch

folder = tempfile.mkdtemp()
torch.manual_seed(0)
points = torch.randn(256, 4)
labels = (points.sum(1) > 0).long()
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

for epoch in range(3):
    total = 0.0
    for x, y in zip(points.split(32), labels.split(32), strict=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with open(f"{folder}/checkpoints/{epoch}.pt", "wb") as file:
        torch.save(net.state_dict(), file)
    print(f"epoch {epoch}: loss {total / 8:.4f}, saved")
