"""Train a small convolutional network on handwritten digits, and write its weights into the folder that is named.

An ordinary training program: it does not know about daifu_bc. One of its lines has a bug.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
BATCH = 32


class Network(nn.Module):
    """Two convolutions and a linear layer, for images of 8 by 8."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
        )
        self.output = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each of the ten digits."""
        return self.output(self.features(images))


def load() -> tuple[DataLoader, dict[str, DataLoader]]:
    """Return the images to train on, in an order drawn for each epoch, and those to evaluate on, by name."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels))
    parts = [TensorDataset(images[part], labels[part]) for part in order.split([1197, 300, 300])]
    training = DataLoader(parts[0], BATCH, shuffle=True)
    return training, {"validation": DataLoader(parts[1], BATCH), "test": DataLoader(parts[2], BATCH)}


def train(network: Network, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    """Show the network each image once."""
    network.train()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()


def evaluate(
    network: Network, loaders: dict[str, DataLoader], history: dict[str, list[dict[str, float]]]
) -> None:
    """Print how good the network is on images that it was not trained on, and note it in the history."""
    network.eval()
    with torch.no_grad():
        for name, loader in loaders.items():
            right, loss, count = 0, 0.0, 0
            for images, labels in loader:
                scores = network(images)
                loss += cross_entropy(scores, labels, reduction="sum").item()
                right += int((scores.argmax(1) == labels).sum())
                count += len(labels)
            metrics = {"loss": loss / count, "accuracy": right / count}
            print(f"  {name + ':':<12}{describe(metrics, history[name])}", flush=True)
            history[name].append(metrics)


def describe(metrics: dict[str, float], earlier: list[dict[str, float]]) -> str:
    """Return the metrics of an evaluation as text, compared with those of the epoch before."""
    text = f"loss {metrics['loss']:.3f}, accuracy {metrics['accuracy']:.1%}"
    if earlier:
        text += f", before {earlier[-1]['acuracy']:.1%}"
    return text


def main(folder: Path) -> None:
    """Train for some epochs."""
    torch.manual_seed(7)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    training, evaluation = load()
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    history: dict[str, list[dict[str, float]]] = {name: [] for name in evaluation}
    for epoch in range(1, EPOCHS + 1):
        print(f"epoch {epoch} of {EPOCHS}", flush=True)
        train(network, training, optimizer)
        evaluate(network, evaluation, history)
        schedule.step()
    weights = b"".join(tensor.numpy().tobytes() for tensor in network.state_dict().values())
    (folder / "weights").write_bytes(weights)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
