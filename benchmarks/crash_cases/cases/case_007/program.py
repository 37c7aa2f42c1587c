"""Evaluates a classifier of small images."""

# The module that reads the images does not say which shape they have, and the queue of batches wants to know.

import hashlib
import time

import cifar10
import torch
import varscope

torch.set_num_threads(1)

NUM_EXAMPLES = 96
BATCH_SIZE = 32
RUN_ONCE = True
EVAL_INTERVAL_SECS = 0.1


def eval_once(logits, labels, graph):
    torch.manual_seed(7)
    true_count = 0
    digest = hashlib.sha256()
    for step in range(NUM_EXAMPLES // BATCH_SIZE):
        answers = logits(step)
        digest.update(answers.detach().numpy().tobytes())
        true_count += int((answers.argmax(1) == labels(step)).sum())
    print("variables", list(graph.variables))
    print("precision @ 1 =", true_count / NUM_EXAMPLES)
    print("logits", digest.hexdigest())


def evaluate():
    with varscope.Graph().as_default() as graph:
        images, labels = cifar10.inputs(eval_data=True, batch_size=BATCH_SIZE)
        logits = cifar10.inference(images)
        print("operations", graph.operations)
        while True:
            eval_once(logits, labels, graph)
            if RUN_ONCE:
                break
            time.sleep(EVAL_INTERVAL_SECS)
        print("done")


evaluate()
