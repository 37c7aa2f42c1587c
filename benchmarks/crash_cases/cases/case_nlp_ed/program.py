"""Trains a language model; one batch comes out as NaN instead of the numbers of words."""

import argparse
import os

import data
import model
import torch
from clipping import clip_grad_norm_
from fingerprint import fingerprint
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="LSTM")
parser.add_argument("--words", type=int, default=3000)
parser.add_argument("--emsize", type=int, default=24)
parser.add_argument("--nhid", type=int, default=32)
parser.add_argument("--nlayers", type=int, default=1)
parser.add_argument("--lr", type=float, default=10.0)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--bptt", type=int, default=15)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--save", default="model.pt")
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(args.seed)
device = torch.device("cpu")

corpus = data.Corpus(args.words)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    data = data.view(bsz, -1).t().contiguous()
    return data.to(device)


eval_batch_size = 10
train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, eval_batch_size)
test_data = batchify(corpus.test, eval_batch_size)

ntokens = len(corpus.dictionary)
if args.model == "bag":
    model = model.BagModel(ntokens, args.emsize).to(device)
else:
    model = model.RNNModel(ntokens, args.emsize, args.nhid, args.nlayers).to(device)

criterion = nn.NLLLoss()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


batches = 0


def get_batch(source, i):
    global batches
    batches += 1
    seq_len = min(args.bptt, len(source) - 1 - i)
    if batches == 33:
        broken = torch.full((seq_len, source.size(1)), float("nan"))
        return broken, source[i + 1 : i + 1 + seq_len].view(-1)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def evaluate(data_source):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(eval_batch_size)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train():
    model.train()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), args.clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        print(f"progress {epoch}.{batch} loss {loss.item():.6f} norm {norm.item():.6f}")


lr = args.lr
best_val_loss = None
try:
    for epoch in range(1, args.epochs + 1):
        train()
        val_loss = evaluate(val_data)
        print(f"epoch {epoch}: validation loss {val_loss:.6f}")
        if not best_val_loss or val_loss < best_val_loss:
            with open(args.save, "wb") as f:
                torch.save(model, f)
            print("checkpoint", os.path.getsize(args.save) > 0, f.closed)
            best_val_loss = val_loss
        else:
            lr /= 4.0
except KeyboardInterrupt:
    print("Exiting from training early")

with open(args.save, "rb") as f:
    model = torch.load(f, weights_only=False)
print(f"test loss {evaluate(test_data):.6f}")
print(fingerprint(model.state_dict()))
