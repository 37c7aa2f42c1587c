"""A network for flowers, trained by hand."""

import torch
from minikeras import GradientTape, Sequential, layers, losses, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(79)

EPOCHS = 3
BATCHES = 6


def batches():
    generator = torch.Generator().manual_seed(0)
    for number in range(BATCHES):
        labels = torch.randint(3, (16,), generator=generator)
        print("batch", number)
        yield torch.randn(16, 4, generator=generator) + labels.unsqueeze(1), labels


def compute_loss(predictions, features, labels):
    return losses.sparse_categorical_crossentropy(labels, model(features))


def compute_gradients(tape, loss, variables):
    return tape.gradient(loss, variables)


def apply_gradients(optimizer, grads, variables):
    optimizer.apply_gradients(zip(grads, variables, strict=True))


model = Sequential()
model.add(layers.Dense(10, activation="relu", input_shape=(4,)))
model.add(layers.Dense(10, activation="relu"))
model.add(layers.Dense(3, activation="softmax"))
variables = list(model.parameters())
optimizer = optimizers.SGD(0.05)
steps = 0

for epoch in range(EPOCHS):
    total = 0.0
    for features, labels in batches():
        predictions = model(features)
        with GradientTape() as tape:
            loss = compute_loss(predictions, features, labels)
        grads = compute_gradients(tape, loss, variables)
        apply_gradients(optimizer, grads, variables)
        steps += 1
        total += loss.item()
    print("epoch", epoch, "loss", total / BATCHES, "steps", steps)
print("weights", utils.digest(model))
