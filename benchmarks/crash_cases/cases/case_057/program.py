"""A softmax classifier of three groups of points."""

# All warnings are errors. The first one is not the program's own fault: deep inside the library, weights are filled
# in a way that PyTorch calls deprecated.

import warnings

import torch
from minikeras import GradientTape, Sequential, layers, losses, optimizers, utils

torch.set_num_threads(1)
utils.set_random_seed(57)
warnings.simplefilter("error")

x_data = torch.tensor(
    [[1, 2, 1, 1], [2, 1, 3, 2], [3, 1, 3, 4], [4, 1, 5, 5], [1, 7, 5, 5], [1, 2, 5, 6]]
).float()
y_data = torch.eye(3)[[2, 2, 2, 1, 0, 0]]
print("points", len(x_data))

model = Sequential([layers.Dense(3, activation="softmax", initializer="random_normal", input_shape=(4,))])
print("weights", [tuple(weight.shape) for weight in model.parameters()])
optimizer = optimizers.SGD(0.1)


class Session:
    def __enter__(self):
        print("session opened")
        return self

    def __exit__(self, *details):
        print("session closed")

    def run(self):
        with GradientTape() as tape:
            cost = losses.categorical_crossentropy(y_data, model(x_data))
        optimizer.apply_gradients(
            zip(tape.gradient(cost, list(model.parameters())), model.parameters(), strict=True)
        )
        return cost.item()


with Session() as session:
    for step in range(101):
        cost = session.run()
        if step % 50 == 0:
            print("step", step, "cost", cost)
    print("prediction", model.predict(torch.tensor([[1.0, 11, 7, 9], [1, 3, 4, 3], [1, 1, 0, 1]])).argmax(1))
print("weights", utils.digest(model))
