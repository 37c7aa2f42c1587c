"""A residual network whose convolutions are pruned while it learns."""

import gibbs_pruning
import numpy as np
import torch
from minikeras import Model, callbacks, data, datasets, layers, optimizers, utils

torch.set_num_threads(1)

(x_train, y_train), (x_test, y_test) = datasets.cifar10.load_data()
x_train = x_train.astype("float32") / 255
x_test = x_test.astype("float32") / 255
x_train_mean = np.mean(x_train, axis=0)
x_train -= x_train_mean
x_test -= x_train_mean
y_train = utils.to_categorical(y_train, 10)
y_test = utils.to_categorical(y_test, 10)
print("data", x_train.shape, x_test.shape)

gibbs_stretch = 2
epochs = 2 * gibbs_stretch
batch_size = 32
p = 0.5
hamiltonian = "unstructured"
test_pruning_mode = "gibbs"
depth = 2
filters = 8
utils.set_random_seed(18)
annealing = np.logspace(1, 3, epochs)


def lr_schedule(epoch):
    return 5e-3 if epoch < 2 * gibbs_stretch else 1e-3


annealer = gibbs_pruning.GibbsPruningAnnealer(annealing)
scheduler = callbacks.LearningRateScheduler(lr_schedule)
used = [annealer, scheduler]
order = np.random.permutation(len(x_train))


def example(number):
    image = torch.from_numpy(x_train[order[number]])
    return (image.flip(1) if number % 2 else image), torch.from_numpy(y_train[order[number]])


generator = data.Dataset.range(len(x_train)).map(example).batch(batch_size)


def resnet_block(inputs, filters, activation="relu"):
    conv = lambda: gibbs_pruning.GibbsPrunedConv2D(  # noqa: E731
        filters, 3, p=p, hamiltonian=hamiltonian, test_pruning_mode=test_pruning_mode
    )
    build = lambda x: conv()(x)  # noqa: E731
    x = build(inputs)
    x = layers.Activation(activation)(x)
    x = build(x)
    return layers.Activation(activation)(layers.Add()(inputs, x))


inputs = layers.Input((16, 16, 3))
x = layers.Conv2D(filters, 3, padding="same", activation="relu")(inputs)
for _ in range(depth):
    x = resnet_block(x, filters)
    x = layers.MaxPooling2D()(x)
outputs = layers.Dense(10, activation="softmax")(layers.Flatten()(x))
model = Model(inputs, outputs)
model.compile(optimizers.Adam(lr_schedule(0)), "categorical_crossentropy", ["accuracy"])

history = model.fit(generator, epochs=epochs, callbacks=used)
print("losses", history.history["loss"])
print("test", model.evaluate(x_test, y_test))
print("weights", utils.digest(model))
