"""Trains an image classifier in two towers, built as one graph and then run."""

# `reuse_variables` in the loop over the towers acts on the root scope of the graph, and for good: the variables of
# the moving average cannot be made any more. The statement that crashes is right; what has run before it was wrong.

import hashlib

import torch
import varscope
from torch.nn import functional

torch.set_num_threads(1)

TOWERS = 2
STEPS = 30


def weight(*shape):
    return lambda: torch.randn(*shape) * 0.1


def inference(images):
    with varscope.variable_scope("conv1"):
        kernel = varscope.get_variable("weights", weight(8, 1, 3, 3))
        bias = varscope.get_variable("biases", weight(8))
    with varscope.variable_scope("softmax_linear"):
        matrix = varscope.get_variable("weights", weight(4, 8))

    def logits(batch):
        hidden = functional.relu(functional.conv2d(images(batch), kernel, bias, padding=1))
        return hidden.mean((2, 3)) @ matrix.t()

    return logits


def tower_loss(tower):
    logits = inference(lambda batch: batch[0][tower::TOWERS])
    return lambda batch: functional.cross_entropy(logits(batch), batch[1][tower::TOWERS])


def average_gradients(tower_grads):
    def average(batch):
        return [
            sum(grads) / len(grads) for grads in zip(*(tower(batch) for tower in tower_grads), strict=True)
        ]

    return average


def batches():
    generator = torch.Generator().manual_seed(1)
    while True:
        labels = torch.randint(4, (16,), generator=generator)
        images = torch.randn(16, 1, 8, 8, generator=generator) + labels.view(-1, 1, 1, 1) / 2
        yield images, labels


def train():
    with varscope.Graph().as_default() as graph, varscope.device("/cpu:0"):
        torch.manual_seed(43)
        learning_rate = 0.5
        opt = varscope.GradientDescentOptimizer(learning_rate)
        tower_grads = []
        inner = varscope.variable_scope(varscope.get_variable_scope())
        inner.__enter__()
        for i in range(TOWERS):
            with varscope.device(f"/gpu:{i}"):
                loss = tower_loss(i)
                varscope.get_variable_scope().reuse_variables()
                grads = opt.compute_gradients(loss)
                tower_grads.append(grads)
        inner.__exit__(None, None, None)
        grads = average_gradients(tower_grads)
        summaries = []
        for name, _ in varscope.trainable_variables():
            summaries.append(f"{name}/gradients")
        for name, _ in varscope.trainable_variables():
            summaries.append(name)
        apply_gradient_op = opt.apply_gradients(grads)
        variable_averages = varscope.ExponentialMovingAverage(0.9)
        variables_averages_op = variable_averages.apply(varscope.trainable_variables())

        print("operations", graph.operations)
        print("summaries", len(summaries))
        stream = batches()
        for step in range(STEPS):
            batch = next(stream)
            apply_gradient_op(batch)
            variables_averages_op(batch)
            if step % 10 == 9:
                print("progress", step + 1)
                print("step", step, "loss", loss(batch).item())
        return dict(graph.variables)


checkpoint = train()
print("towers", TOWERS)
digest = hashlib.sha256()
for name, value in checkpoint.items():
    print("in the checkpoint:", name)
    digest.update(value.detach().numpy().tobytes())
print("weights", digest.hexdigest())
