"""One epoch of training."""


def train(epoch, dataloader, net, criterion, optimizer, opt):
    net.train()
    for i, (edges, annotation, target) in enumerate(dataloader):
        net.zero_grad()
        output = net(edges, annotation)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        if opt.verbal and i % 4 == 0:
            print(f"[{epoch}/{opt.epochs}][{i}/{len(dataloader)}] Loss: {loss.item()}")
