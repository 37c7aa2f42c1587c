"""Reads samples from files, in two worker processes. One file is damaged."""

import tempfile
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    """Points in files, one in each."""

    def __init__(self, folder: Path) -> None:
        self.names = sorted(folder.iterdir())

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)

    def __getitem__(self, index: int) -> torch.Tensor:
        """Read a file."""
        numbers = [float(word) for word in self.names[index].read_text().split()]
        return torch.tensor(numbers)


def write(folder: Path) -> None:
    """Write the files."""
    for index in range(40):
        text = " ".join(str(index * 0.1 + part) for part in range(4))
        (folder / f"{index:02}.txt").write_text(text if index != 23 else text[:10] + "\0?")


def main() -> None:
    """Train for an epoch."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
        loader = DataLoader(Samples(Path(name)), batch_size=8, shuffle=True, num_workers=2)
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
        seen = 0
        for batch in loader:
            optimizer.zero_grad()
            loss = (net(batch).squeeze(1) - batch.sum(1)).square().mean()
            loss.backward()
            optimizer.step()
            seen += len(batch)
        print(f"trained on {seen} samples")


if __name__ == "__main__":
    main()
