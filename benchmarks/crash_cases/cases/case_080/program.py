"""A convolutional network for digits."""

# No layer flattens the images: the last one answers for each point, and `fit` finds that the targets do not.

import torch
from minikeras import Sequential, datasets, utils
from minikeras.layers import Conv2D, Dense

torch.set_num_threads(1)

(X_train, y_train), (X_test, y_test) = datasets.mnist.load_data()
X_train = X_train.reshape(-1, 12, 12, 1).astype("float32") / 255
X_test = X_test.reshape(-1, 12, 12, 1).astype("float32") / 255
y_train = utils.to_categorical(y_train, 10)
y_test = utils.to_categorical(y_test, 10)
print("images", X_train.shape[0], X_test.shape[0])

utils.set_random_seed(80)
model = Sequential()
model.add(Conv2D(8, 3, activation="relu", input_shape=(12, 12, 1)))
model.add(Conv2D(4, 3, activation="relu"))
model.add(Dense(10, activation="softmax"))
model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(X_train, y_train, epochs=2)
print("losses", history.history["loss"])
print("test", model.evaluate(X_test, y_test))
print("weights", utils.digest(model))
