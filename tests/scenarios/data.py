"""The data cannot be read, or do not fit together."""

from __future__ import annotations

from tests.scenarios.scenario import Scenario

COLLATE = """
opened = []
class Sampler:
    def __init__(self, count):
        self.order = [(7 * number) % count for number in range(count)]
    def __iter__(self):
        return iter(self.order)
def collate(items):
    assert len({len(item) for item in items}) == 1, 'ragged'
    return [item[0] for item in items]
def loader(data, size):
    try:
        pending = []
        for number in Sampler(len(data)):
            pending.append(data[number])
            if len(pending) == size:
                yield collate(pending)
                pending = []
        opened.append('rest')
        if pending: yield collate(pending)
    finally:
        opened.append('closed')
def bar(iterable):
    for count, item in enumerate(iterable):
        print('bar', count)
        yield item
    print('bar end')
data = [[number] * (3 if number == 11 else 2) for number in range(20)]
seen = []
for batch in bar(loader(data, 3)):
    seen += batch
    print('batch', batch, opened)
assert sorted(seen) == list(range(20))
print(seen, opened)
"""

ASYNC_COLLATE = """
import asyncio
def collate(items):
    if len(set(map(type, items))) > 1:
        raise TypeError('mixed')
    return sum(items)
async def source(count):
    try:
        for number in range(count):
            await asyncio.sleep(0)
            yield str(number) if number == 5 else number
    finally:
        print('source closed')
async def batches(items):
    pending = []
    async for item in items:
        pending.append(item)
        if len(pending) == 2:
            total = collate(pending)
            pending.clear()
            yield total
async def main():
    async for total in batches(source(8)):
        print('total', total)
asyncio.run(main())
"""

TRUNCATED = """
def decode(index):
    if index in (13, 17):
        raise OSError('image file is truncated')
    return index * 10
class Dataset:
    def __getitem__(self, index):
        if index >= 20:
            raise IndexError
        image = decode(index)
        return image + 1
def loader(dataset):
    for number, sample in enumerate(dataset):
        yield number, sample
for number, sample in loader(Dataset()):
    print(number, sample)
"""

SKIPPED = """
def decode(name):
    return name.encode('ascii')
def samples(names):
    for name in names:
        data = decode(name)
        yield name, len(data)
print(*samples(['one', 'zwölf', 'three', 'fünf', 'two']))
print(dict(samples(['a', 'b'])))
"""

THREAD = """
import queue, threading, sys
class Wrapped:
    def __init__(self, info):
        self.kind, self.error = info[0], info[1]
    def reraise(self):
        raise self.error
def work(tasks, results, dataset):
    while (index := tasks.get()) is not None:
        try:
            results.put((index, dataset[index]))
        except Exception:
            results.put((index, Wrapped(sys.exc_info())))
def loader(dataset):
    tasks, results = queue.Queue(), queue.Queue()
    worker = threading.Thread(target=work, args=(tasks, results, dataset))
    worker.start()
    try:
        for index in range(len(dataset)):
            tasks.put(index)
            index, value = results.get()
            if isinstance(value, Wrapped): value.reraise()
            yield index, value
    finally:
        tasks.put(None)
        worker.join()
class Dataset(list):
    def __getitem__(self, index):
        return 100 // super().__getitem__(index)
dataset = Dataset([1, 2, 0, 5])
print(*loader(dataset))
"""

POOL = """
import time
from concurrent.futures import ThreadPoolExecutor
table = {0: 'a', 1: 'b', 3: 'd'}
def load(index):
    time.sleep(0.01)
    return index, table[index]
with ThreadPoolExecutor(1) as pool:
    for index, value in pool.map(load, range(4)):
        print(index, value)
"""

LABELS = """
table = [number * number for number in range(9)]
class Embedding:
    def __init__(self):
        self.calls = 0
    def __call__(self, labels):
        found = []
        for label in labels:
            self.calls += 1
            found.append(table[label])
        return found
embedding = Embedding()
batches = [[1, 2], [8, 11], [3]]
for batch in batches:
    print('batch', len(batch), embedding(batch))
print('calls', embedding.calls)
"""

MATCH = """
def classes(labels):
    names = {0: 'cat', 1: 'dog'}
    for label in labels:
        match label:
            case {'id': number, 'box': [left, *_]}:
                yield names[number], left
            case [number]:
                yield names[number], None
for found in classes([{'id': 0, 'box': [1, 2]}, [7], {'id': 1, 'box': [5]}]):
    print(found)
"""

SCENARIOS = {
    "a ragged batch below two generators": Scenario(
        COLLATE,
        (("3 if number == 11 else 2", "2"),),
        "p [len(item) for item in items]\nframe loader\np opened\naction pending[:] = [item[:2] for item in pending]\npass\n",
        says=("AssertionError: ragged", "[]"),
    ),
    "a mixed batch below two asynchronous generators": Scenario(
        ASYNC_COLLATE,
        (("str(number) if number == 5 else number", "number"),),
        "frame batches\naction pending[:] = map(int, pending)\npass\n",
    ),
    "a sample is truncated and gets a substitute": Scenario(
        TRUNCATED,
        (("in (13, 17)", "in ()"),),
        "return 130\n---\nframe __getitem__\naction image = 170\nskip\n",
        holds=2,
    ),
    "samples are skipped": Scenario(
        SKIPPED,
        (("['one', 'zwölf', 'three', 'fünf', 'two']", "['one', 'three', 'two']"),),
        "frame samples\nskip body\n---\nframe samples\nskip body\n",
        holds=2,
    ),
    "a worker thread hands its exception to the main thread": Scenario(
        THREAD,
        (("[1, 2, 0, 5]", "[1, 2, 100, 5]"),),
        "return 1\n",
        says=("ZeroDivisionError", "thread Thread-1"),
        options=("--hold-through", "work"),
    ),
    "a job of a pool fails": Scenario(
        POOL,
        (("1: 'b', ", "1: 'b', 2: 'c', "),),
        "action table[2] = 'c'\npass\n",
        says=("thread ThreadPoolExecutor-0_0",),
    ),
    "a label is not in the table": Scenario(LABELS, (("[8, 11]", "[8, 8]"),), "action label = 8\npass\n"),
    "a label is not in the table, in a match": Scenario(
        MATCH, (("[7]", "[1]"),), "action number = 1\npass\n"
    ),
}
