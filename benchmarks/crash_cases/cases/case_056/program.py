"""Shows what the filters of a convolution look for, by climbing from noise to an image that they like."""

# After each enlargement the image has lost its dimension of the batch. The function that fails is nested in the one
# that shows the layer, and reads its variables.

import hashlib

import torch
from minikeras import backend
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(56)


def visualize_layer(model, layer, step=1.0, epochs=6, upscaling_steps=4, upscaling_factor=1.2, output_dim=16):
    climbed = []

    def _generate_filter_image(filter_index):
        iterate = backend.function(model[: layer + 1], lambda output: output[:, filter_index].mean())
        intermediate_dim = tuple(
            int(output_dim / (upscaling_factor**x)) for x in range(upscaling_steps, 0, -1)
        )
        input_img_data = torch.rand(1, 3, intermediate_dim[0], intermediate_dim[0])
        for up in intermediate_dim[1:] + (output_dim,):
            for _ in range(epochs):
                loss_value, grads_value = iterate(input_img_data)
                input_img_data = input_img_data + grads_value * step
                climbed.append(filter_index)
                if loss_value <= -5:
                    return None
            print("filter", filter_index, "up to", up, "loss", loss_value)
            img = input_img_data[0].clamp(-3, 3)
            img = functional.interpolate(img.unsqueeze(0), size=(up, up), mode="bilinear")[0]
            input_img_data = img
        return input_img_data, loss_value

    processed_filters = []
    for f in range(4):
        img_loss = _generate_filter_image(f)
        if img_loss is not None:
            processed_filters.append(img_loss)
        print("progress", f + 1)
    print("climbed", len(climbed), "steps of", [climbed.count(f) for f in range(4)])
    processed_filters.sort(key=lambda x: x[1], reverse=True)
    return processed_filters


model = nn.Sequential(
    nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1)
)
model.eval()
shown = visualize_layer(model, 3)
print("order", [loss for _, loss in shown])
digest = hashlib.sha256()
for image, _ in shown:
    digest.update(image.numpy().tobytes())
print("images", digest.hexdigest())
