"""Trains and validates. The line that prints the last metric has a typo, met when the first epoch is over."""

import torch
from torch.nn.functional import cross_entropy


def validate(net: torch.nn.Module, points: torch.Tensor, labels: torch.Tensor) -> None:
    """Print loss, accuracy and the rate of false alarms."""
    net.eval()
    with torch.no_grad():
        scores = net(points)
        guesses = scores.argmax(1)
        print(f"  loss {cross_entropy(scores, labels):.4f}")
        print(f"  accuracy {(guesses == labels).float().mean():.1%}")
        print(f"  false alarms {((guesses == 1) & (labels == 0)).float():.1%}")
    net.train()


def main() -> None:
    """Train for three epochs."""
    torch.manual_seed(0)
    points = torch.randn(512, 4)
    labels = (points.sum(1) > 0).long()
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        for part in torch.randperm(384).split(32):
            optimizer.zero_grad()
            cross_entropy(net(points[part]), labels[part]).backward()
            optimizer.step()
        print(f"epoch {epoch}")
        validate(net, points[384:], labels[384:])


main()
