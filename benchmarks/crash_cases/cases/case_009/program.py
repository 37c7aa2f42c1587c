"""A generative adversarial network of dense layers for small digits."""

# Written for Python 2: widths and counts are halved with `/`. The first of four such errors is met while the
# constructor builds the networks, the others in the first round of the training loop, one at a time.

import numpy as np
import torch
from minikeras import Sequential, datasets, layers, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(9)


class GAN:
    def __init__(self, width=12, height=12, channels=1):
        self.width = width
        self.height = height
        self.channels = channels
        self.shape = (self.width, self.height, self.channels)
        self.optimizer = optimizers.Adam(0.002)
        self.noise_gen = 16

        self.D = self.__discriminator()
        self.D.compile(self.optimizer, "binary_crossentropy", ["binary_accuracy"])

        self.G = self.__generator()
        self.stacked_G_D = self.__stacked_generator_discriminator()
        self.stacked_G_D.compile(optimizers.Adam(0.002), "binary_crossentropy")

    def __generator(self):
        model = Sequential()
        model.add(layers.Dense(32, activation="relu", input_shape=(self.noise_gen,)))
        model.add(layers.Dense(64, activation="relu"))
        model.add(layers.Dense(int(np.prod(self.shape)), activation="tanh"))
        model.add(layers.Reshape(self.shape))
        return model

    def __discriminator(self):
        model = Sequential()
        model.add(layers.Flatten(input_shape=self.shape))
        model.add(layers.Dense(64, activation="relu"))
        model.add(layers.Dense(64 / 2, activation="relu"))
        model.add(layers.Dense(1, activation="sigmoid"))
        return model

    def __stacked_generator_discriminator(self):
        model = Sequential()
        model.add(Part(self.G, trainable=True, input_shape=(self.noise_gen,)))
        model.add(Part(self.D, trainable=False))
        return model

    def train(self, X_train, rounds=5, batch=32):
        for cnt in range(rounds):
            random_index = np.random.randint(0, len(X_train) - batch // 2)
            print("round", cnt, "from", random_index)
            legit_images = X_train[random_index : random_index + batch / 2].reshape(-1, *self.shape)
            gen_noise = np.random.normal(0, 1, (batch / 2, self.noise_gen))
            syntetic_images = self.G.predict(gen_noise)
            x_combined_batch = np.concatenate((legit_images, syntetic_images))
            y_combined_batch = np.concatenate((np.ones((batch / 2, 1)), np.zeros((batch / 2, 1))))
            d_loss = self.D.train_on_batch(x_combined_batch, y_combined_batch)

            noise = np.random.normal(0, 1, (batch, self.noise_gen))
            g_loss = self.stacked_G_D.train_on_batch(noise, np.ones((batch, 1)))
            print("round", cnt, "discriminator", d_loss, "generator", g_loss)


class Part(layers.Layer):
    """A model as a layer of another one."""

    def __init__(self, model, trainable, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.trainable = trainable

    def parameters(self, recurse=True):
        return self.model.parameters() if self.trainable else iter(())

    def call(self, inputs):
        return self.model.call(inputs)


(X_train, _), (_, _) = datasets.mnist.load_data()
X_train = (X_train.astype("float32") - 127.5) / 127.5
X_train = np.expand_dims(X_train, axis=3)
gan = GAN()
gan.train(X_train)
print("generator", utils.digest(gan.G))
print("discriminator", utils.digest(gan.D))
