"""The network, and where its images come from."""

import cifar10_input
import torch
import varscope


def inputs(eval_data, batch_size):
    images, labels = cifar10_input.inputs(eval_data=eval_data, batch_size=batch_size)
    return images, labels


def inference(images):
    generator = torch.Generator().manual_seed(3)
    graph = varscope.get_default_graph()
    size = cifar10_input.IMAGE_SIZE**2 * 3
    with varscope.variable_scope("local3"):
        hidden = varscope.get_variable(
            "weights", lambda: torch.randn(24, size, generator=generator) / size**0.5
        )
    with varscope.variable_scope("softmax_linear"):
        matrix = varscope.get_variable("weights", lambda: torch.randn(4, 24, generator=generator) / 5)
    graph.operations.append("softmax_linear")
    return lambda step: torch.relu(images(step) @ hidden.t()) @ matrix.t()
