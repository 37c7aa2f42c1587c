"""A conditional neural process learns to continue curves from some of their points."""

import torch
from minikeras import Sequential, callbacks, data, layers, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(28)

MAX_CONTEXT_POINTS = 10
TARGETS = 8


def curves(count, batch):
    grid = torch.linspace(-2, 2, TARGETS)

    def curve(index):
        num_context = torch.randint(3, MAX_CONTEXT_POINTS, ())
        frequency, phase = torch.rand(2) * 2
        context = torch.rand(MAX_CONTEXT_POINTS) * 4 - 2
        known = (torch.arange(MAX_CONTEXT_POINTS) < num_context).float()
        values = torch.sin(frequency * context + phase)
        return torch.cat([context * known, values * known]), torch.sin(frequency * grid + phase)

    return data.Dataset.range(count).map(curve).batch(batch)


train_ds = curves(128, 16)
test_ds = curves(16, 16)


class Progress(callbacks.Callback):
    """Tells how well unseen curves are continued."""

    def __init__(self, dataset):
        self.dataset = dataset

    def on_train_begin(self):
        self.seen = 0

    def on_epoch_end(self, epoch, logs):
        for inputs, targets in self.dataset:
            self.seen += len(inputs)
            print("progress", epoch + 1)
            print("curves", self.seen, "loss", logs["loss"], self.model.evaluate(inputs, targets))


with torch.device("cpu"):
    model = Sequential()
    model.add(layers.Dense(32, activation="relu", input_shape=(2 * MAX_CONTEXT_POINTS,)))
    model.add(layers.Dense(32, activation="relu"))
    model.add(layers.Dense(TARGETS))
    model.compile(optimizers.Adam(0.01), "mean_squared_error")

progress = Progress(test_ds)
used = [progress]
history = model.fit(train_ds, epochs=4, callbacks=used)
print("losses", history.history["loss"])
print("weights", utils.digest(model))
