"""A gated PixelCNN that paints samples after each epoch."""

# One axes object is subscripted as if there were several: a plotting error in a callback below the library's epoch
# loop, after a whole epoch of training.

import hashlib

import miniplot
import numpy as np
import torch
from minikeras import Model, callbacks, datasets, layers, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(16)

SIDE = 12


class MaskedConv2D(layers.Conv2D):
    """A convolution that does not see the points to the right and below; type A does not see the middle either."""

    def __init__(self, mask_type, **kwargs):
        super().__init__(padding="same", **kwargs)
        self.mask_type = mask_type

    def build(self, input_shape):
        super().build(input_shape)
        mask = torch.ones_like(self.kernel)
        middle = self.kernel_size // 2
        mask[:, :, middle, middle + (self.mask_type == "B") :] = 0
        mask[:, :, middle + 1 :] = 0
        self.mask = mask

    def call(self, inputs):
        return self.convolve(inputs, self.kernel * self.mask)


class GatedBlock(layers.Layer):
    """A masked convolution whose one half is the gate of the other."""

    def __init__(self, filters):
        super().__init__()
        self.filters = filters
        self.convolution = MaskedConv2D("B", filters=2 * filters, kernel_size=3)

    def build(self, input_shape):
        self.convolution.build(input_shape)

    def call(self, inputs):
        value, gate = self.convolution.call(inputs).split(self.filters, -1)
        return inputs + torch.tanh(value) * torch.sigmoid(gate)


def plot_to_image(figure):
    """Turn a figure into bytes and close it."""
    image = figure.to_bytes()
    miniplot.close(figure)
    return image


class PlotSamples(callbacks.Callback):
    """Paints some samples of the model after each epoch."""

    def __init__(self, count):
        self.count = count

    def sample(self):
        images = np.zeros((self.count, SIDE, SIDE, 1), dtype="float32")
        for row in range(4):
            for column in range(SIDE):
                chances = self.model.predict(images)[:, row, column, 0]
                images[:, row, column, 0] = np.random.rand(self.count) < chances
        return images

    def plot_img(self, img, epoch, number):
        fig, ax = miniplot.subplots(1)
        print("figure", fig.number)
        ax[0].imshow(img[..., 0])
        ax[0].set_title(f"epoch {epoch}, sample {number}")
        return plot_to_image(fig)

    def on_epoch_end(self, epoch, logs):
        print("progress", epoch + 1)
        for i, img in enumerate(self.sample()):
            image = self.plot_img(img, epoch, i)
            print("image", i, hashlib.sha256(image).hexdigest()[:16])


(x_train, _), _ = datasets.mnist.load_data()
x_train = (x_train[..., np.newaxis] > 127).astype("float32")

inputs = layers.Input((SIDE, SIDE, 1))
x = MaskedConv2D("A", filters=8, kernel_size=5)(inputs)
x = GatedBlock(8)(x)
x = GatedBlock(8)(x)
outputs = layers.Dense(1, activation="sigmoid")(layers.Activation("relu")(x))
model = Model(inputs, outputs)
model.compile(optimizers.Adam(0.01), "binary_crossentropy")

history = model.fit(x_train, x_train, batch_size=32, epochs=3, callbacks=[PlotSamples(3)])
print("losses", history.history["loss"])
print("figures open", len(miniplot.figures))
print("weights", utils.digest(model))
