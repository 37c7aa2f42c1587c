"""A convolutional network for digits, larger, its statements over several lines."""

import torch
from minikeras import Sequential, datasets, utils
from minikeras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D

torch.set_num_threads(1)
utils.set_random_seed(81)

(x_train, y_train), (x_test, y_test) = datasets.mnist.load_data()
x_train = x_train.reshape(-1, 12, 12, 1)
x_test = x_test.reshape(-1, 12, 12, 1)
x_train = x_train.astype("float32") / 255
x_test = x_test.astype("float32") / 255

y_train = utils.to_categorical(
    y_train,
    10,
)
y_test = utils.to_categorical(
    y_test,
    10,
)

model = Sequential()
model.add(
    Conv2D(
        8,
        3,
        activation="relu",
        input_shape=(12, 12, 1),
    )
)
model.add(
    Conv2D(
        8,
        3,
        padding="same",
        activation="relu",
    )
)
model.add(MaxPooling2D(2))
model.add(Dropout(0.25))
model.add(Flatten())
model.add(
    Dense(
        48,
        activation="relu",
    )
)
model.add(Dropout(0.5))
model.add(Dense(10, activation="softmax"))
model.compile(
    loss="categorical_crossentropy",
    optimizer="adam",
    metrics=["accuracy"],
)

model.fit(
    x_train,
    y_train,
    batch_size=32,
    epochs=2,
    verbose=1,
)
score = model.evaluate(
    x_test,
    y_test,
)
print("score", score)
print("weights", utils.digest(model))
