"""One test."""

import torch


def test(dataloader, net, criterion, opt):
    test_loss = 0
    correct = 0
    net.eval()
    for i, (edges, annotation, target) in enumerate(dataloader):
        output = net(edges, annotation)
        print("tested batch", i)
        test_loss += criterion(output, target).item()
        pred = output.data.max(1, keepdim=True)[1]
        correct += int(pred.eq(target.data.view_as(pred)).sum())

    test_loss /= len(dataloader.dataset)
    rate = 100.0 * correct / len(dataloader.dataset)
    print(
        f"Test set: average loss {test_loss:.6f}, accuracy {correct}/{len(dataloader.dataset)} ({rate:.0f}%)"
    )
    return torch.tensor(rate)
