"""A convolutional network for digits whose training is tracked."""

import torch
from minikeras import Sequential, datasets, layers, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(39)


class Run:
    """Notes parameters and metrics, each as often as it is told."""

    def __init__(self):
        self.entries = []

    def log_param(self, name, value):
        self.entries.append(("param", name, value))

    def log_metric(self, name, value):
        self.entries.append(("metric", name, value))


run = Run()
run.log_param("epochs", 2)
run.log_param("batch size", 32)

(train_images, train_labels), (test_images, test_labels) = datasets.mnist.load_data()
train_images = train_images.reshape(-1, 12, 12, 1).astype("float32") / 255
test_images = test_images.reshape(-1, 12, 12, 1).astype("float32") / 255

model = Sequential()
model.add(layers.Conv2D(8, 3, activation="relu", input_shape=(12, 12, 1)))
run.log_param("first layer", "Conv2D")
model.add(layers.MaxPooling2D(2))
model.add(layers.Flatten())
model.add(layers.Dense(10, activation="softmax"))
run.log_param("layers", len(model.layers))
model.compile(optimizers.Adam(0.005), "sparse_categorical_crossentropy", ["accuracy"])

history = model.fit(train_images, train_labels, batch_size=32, epochs=2)
for name, values in history.history.items():
    run.log_metric(name, values[-1])
for name, value in model.evaluate(test_images, test_labels).items():
    run.log_metric(f"test {name}", value)
for entry in run.entries:
    print(*entry)
print("weights", utils.digest(model))
