"""A convolutional network for small coloured images."""

# Three mistakes, met one after the other: the images shrink away, an optimiser is not imported, and the loss is
# none for labels that are numbers.

import torch
from minikeras import Sequential, datasets, layers, utils

torch.set_num_threads(1)

(x_train, y_train), (x_test, y_test) = datasets.cifar10.load_data()
x_train = x_train.astype("float32") / 255
x_test = x_test.astype("float32") / 255
print("x_train", x_train.shape, "y_train", y_train.shape)

utils.set_random_seed(90)
model = Sequential()
utils.set_random_seed(90)
model = Sequential()
model.add(layers.Conv2D(8, 3, padding="same", activation="relu", input_shape=(16, 16, 3)))
model.add(layers.Conv2D(8, 3, padding="same", activation="relu"))
model.add(layers.MaxPooling2D(2))
model.add(layers.Conv2D(16, 3, padding="same", activation="relu"))
model.add(layers.MaxPooling2D(2))
model.add(layers.Dropout(0.25))
model.add(layers.Conv2D(16, 3, padding="same", activation="relu"))
model.add(layers.Flatten())
model.add(layers.Dense(32, activation="relu"))
model.add(layers.Dense(10, activation="softmax"))
print("layers", len(model.layers))
sgd = SGD(learning_rate=0.05, momentum=0.9)  # noqa: F821
model.compile(optimizer=sgd, loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=32, epochs=2)
print("losses", history.history["loss"])
print("test", model.evaluate(x_test, y_test))
print("weights", utils.digest(model))
