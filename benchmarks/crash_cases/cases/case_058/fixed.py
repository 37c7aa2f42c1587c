"""A line is fitted to a handful of points."""

import numpy as np
import torch
from minikeras import Sequential, layers, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(58)

data_input = np.array([[0], [1], [2], [3], [4], [5], [6], [7]], dtype="float32")
data_output = np.array([[7], [30], [53], [76], [99], [122], [145], [168]], dtype="float32")

model = Sequential()
model.add(layers.Dense(1, activation="linear", input_shape=(1,)))
print("layers", len(model.layers))
model.compile(optimizers.SGD(0.02), "mean_squared_error")
history = model.fit(data_input, data_output, epochs=40, batch_size=2, verbose=0)
print("loss", history.history["loss"][-1])
print("prediction", model.predict(torch.tensor([[8.0]])))
print("weights", utils.digest(model))
