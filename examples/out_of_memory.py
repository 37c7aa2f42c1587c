"""Batches of texts of different length. A long one does not fit into the memory that the program is given."""

import resource
from pathlib import Path

import torch


def memory_in_use() -> int:
    """Return the size of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main() -> None:
    """Train on each batch once."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(8, 512), torch.nn.Softplus(), torch.nn.Linear(512, 512), torch.nn.Softplus()
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    net(torch.randn(8, 16, 8)).mean().backward()
    resource.setrlimit(resource.RLIMIT_AS, (memory_in_use() + 100 * 2**20, resource.RLIM_INFINITY))
    for length in (16, 64, 32, 2048, 64):
        batch = torch.randn(8, length, 8)
        optimizer.zero_grad()
        parts = [batch]
        while parts:
            loss = net(parts[0]).square().mean()
            loss.backward()
            del parts[0]
        optimizer.step()
        print(f"trained on a batch of length {length}")


main()
