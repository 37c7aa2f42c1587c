"""A convolutional network for digits."""

import torch
from minikeras import Sequential, datasets, layers, utils

torch.set_num_threads(1)
utils.set_random_seed(36)

batch_size = 32
epochs = 2
rows, columns = 12, 12

(x_train, y_train), (x_test, y_test) = datasets.mnist.load_data()
x_train = x_train.reshape(x_train.shape[0], rows, columns, 1)
x_test = x_test.reshape(x_test.shape[0], rows, columns, 1)
x_train = x_train.astype("float32") / 255
x_test = x_test.astype("float32") / 255
y_train = utils.to_categorical(y_train, 10)
y_test = utils.to_categorical(y_test, 10)
print("x_train", x_train.shape[0], "x_test", x_test.shape[0])

model = Sequential()
model.add(layers.Conv2D(8, 3, activation="relu", input_shape=(rows, columns, 1)))
print("added", len(model.layers))
model.add(layers.Conv2D(8, 3, activation="relu"))
model.add(layers.MaxPooling2D(2))
model.add(layers.Dropout(0.25))
model.add(layers.Flatten())
model.add(layers.Dense(32, activation="relu"))
model.add(layers.Dense(10, activation="softmax"))
print("layers", len(model.layers))
model.compile("adam", "categorical_crossentropy", ["accuracy"])

history = model.fit(x_train, y_train, batch_size=batch_size, epochs=epochs)
print("losses", history.history["loss"])
print("test", model.evaluate(x_test, y_test))
print("weights", utils.digest(model))
