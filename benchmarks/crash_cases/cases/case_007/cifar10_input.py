"""Reads images, made up here, and puts them into batches."""

import torch
import varscope

IMAGE_SIZE = 8


def read_cifar10(eval_data):
    varscope.get_default_graph().operations.append("filename_queue")

    def example(number):
        generator = torch.Generator().manual_seed(number + 10000 * eval_data)
        label = number % 4
        image = torch.randn(IMAGE_SIZE + 4, IMAGE_SIZE + 4, 3, generator=generator)
        return image + label / 2, label

    return example


def _generate_image_and_label_batch(image, examples, batch_size):
    return varscope.batch(image, examples, batch_size)


def inputs(eval_data, batch_size):
    read = read_cifar10(eval_data)
    print("filling the queue, this takes a while")
    height = width = IMAGE_SIZE
    float_image = torch.nn.parameter.UninitializedBuffer()

    def resized(number):
        image, label = read(number)
        image = image[2 : 2 + height, 2 : 2 + width]
        return (image - image.mean()) / image.std(), label

    return _generate_image_and_label_batch(float_image, resized, batch_size)
