"""Tells rocks from mines by their echoes."""

import numpy as np
import torch
from minikeras import Sequential, layers, utils

torch.set_num_threads(1)
utils.set_random_seed(96)


def read_dataset():
    random = np.random.RandomState(0)
    rows, labels = [], []
    for _ in range(96):
        label = int(random.randint(2))
        echo = random.rand(60) + label * np.sin(np.arange(60) / 6) / 2
        rows.append(echo.tolist())
        labels.append([float(label)])
    return rows, labels


x, y = read_dataset()
split = 72
train_x, test_x = x[:split], x[split:]
train_y, test_y = y[:split], y[split:]
print("rows", len(train_x), len(test_x))

model = Sequential()
model.add(layers.Dense(60, activation="relu", input_shape=(60,)))
model.add(layers.Dense(30, activation="relu"))
model.add(layers.Dense(1, activation="sigmoid"))
model.compile("adam", "binary_crossentropy", ["binary_accuracy"])
print("compiled")
history = model.fit(np.array(train_x), np.array(train_y), epochs=5, batch_size=8)
print("losses", history.history["loss"])
print("test", model.evaluate(np.array(test_x), np.array(test_y)))
print("weights", utils.digest(model))
