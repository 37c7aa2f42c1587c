"""A gated graph network learns which nodes of small graphs can be reached."""

# The function that tests after each epoch reads the losses as torch once did: `loss.data[0]`, of a 0-dimensional tensor.

import argparse
import hashlib

import torch
from model import GGNN
from torch.utils.data import DataLoader, TensorDataset
from utils.test import test
from utils.train import train

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--verbal", action="store_true")
parser.add_argument("--lr", type=float, default=0.01)
opt = parser.parse_args()

NODES = 4


def graphs(count, seed):
    generator = torch.Generator().manual_seed(seed)
    edges = (torch.rand(count, NODES, NODES, generator=generator) < 0.4).float()
    start = torch.randint(NODES, (count,), generator=generator)
    reached = torch.eye(NODES)[start]
    for _ in range(NODES):
        reached = (reached + torch.einsum("bi,bij->bj", reached, edges)).clamp(max=1)
    annotation = torch.eye(NODES)[start].unsqueeze(-1)
    return TensorDataset(edges, annotation, reached[:, -1].long())


def main(opt):
    torch.set_num_threads(1)
    torch.manual_seed(5)
    train_loader = DataLoader(graphs(192, 1), batch_size=16, shuffle=True, num_workers=0)
    test_loader = DataLoader(graphs(64, 2), batch_size=16, shuffle=False, num_workers=opt.workers)
    net = GGNN(state_dim=8, steps=4)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=opt.lr)
    for epoch in range(opt.epochs):
        train(epoch, train_loader, net, criterion, optimizer, opt)
        print("progress", epoch + 1)
        test(test_loader, net, criterion, opt)
    digest = hashlib.sha256()
    for value in net.state_dict().values():
        digest.update(value.numpy().tobytes())
    print("weights", digest.hexdigest())


if __name__ == "__main__":
    main(opt)
