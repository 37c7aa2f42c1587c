"""Small pieces of work that raise nothing, or handle what they raise. Each takes a number of iterations.

The names beginning with a and b are those of the loops that the reference implementation was measured with.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager


def a1_nested_for(n: int) -> int:
    """Two loops, integers."""
    total = product = 1
    low, high, step = 3, 7, 2
    for i in range(n // 10 + 1):
        for j in range(10):
            product = (product * step + j) % 10007
            total += product ^ (i & high) + low
    return total


def a2_flat_for(n: int) -> int:
    """One loop, integers."""
    total = product = 1
    for i in range(n):
        product = (product * 3 + i) % 10007
        total += product ^ (i & 7)
        if total > 1_000_000:
            total -= 1_000_000
    return total


def a3_while(n: int) -> int:
    """A while loop, integers."""
    i = total = 0
    while i < n:
        total = (total * 5 + i) & 0xFFFF
        i += 1
    return total


def a4_long_body(n: int) -> int:
    """Twenty statements in the body."""
    a = b = c = d = e = f = g = h = k = m = 1
    for i in range(n):
        a = (a + i) & 1023
        b = (b + a) & 1023
        c = (c ^ b) & 1023
        d = (d + c * 3) & 1023
        e = (e - d) & 1023
        f = (f + e) & 1023
        g = (g ^ f) & 1023
        h = (h + g * 5) & 1023
        k = (k - h) & 1023
        m = (m + k) & 1023
        a = (a ^ m) & 1023
        b = (b - a) & 1023
        c = (c + b) & 1023
        d = (d ^ c) & 1023
        e = (e + d * 7) & 1023
        f = (f - e) & 1023
        g = (g + f) & 1023
        h = (h ^ g) & 1023
        k = (k + h) & 1023
        m = (m - k) & 1023
    return a + b + c + d + e + f + g + h + k + m


def a5_triple_nested(n: int) -> int:
    """Three loops around one line."""
    total = 0
    for i in range(n // 64 + 1):
        for j in range(8):
            for k in range(8):
                total += i ^ j ^ k
    return total


def work(n: int) -> int:
    """A callee that does something."""
    total = 0
    for i in range(n):
        total += i & 3
    return total


def a6_work_in_callee(n: int) -> int:
    """Most of the time passes in a callee."""
    total = 0
    for _ in range(n // 100 + 1):
        total += work(100)
    return total


def b1_for_pass(n: int) -> int:
    """An empty loop."""
    for _ in range(n):
        pass
    return n


def b2_for_add(n: int) -> int:
    """An addition in a loop."""
    total = 0
    for i in range(n):
        total += i
    return total


def b3_while_add(n: int) -> int:
    """The shortest while loop."""
    i = 0
    while i < n:
        i += 1
    return i


class Manager:
    """A context manager that does nothing."""

    def __enter__(self) -> int:
        return 1

    def __exit__(self, *details: object) -> None:
        return None


def b4_with(n: int) -> int:
    """A `with` in a loop."""
    total = 0
    manager = Manager()
    for i in range(n):
        with manager as one:
            total += one + i
    return total


def small(x: int) -> int:
    """A callee that does almost nothing."""
    return x + 1


def b5_call(n: int) -> int:
    """A small call in a loop."""
    total = 0
    for _ in range(n):
        total = small(total)
    return total


def call_with_keywords(n: int) -> int:
    """Calls with defaults, keywords and a variable number of arguments."""

    def callee(a: int, b: int = 2, *more: int, c: int = 3, **others: int) -> int:
        return a + b + c + len(more) + len(others)

    total = 0
    for i in range(n):
        total += callee(i, c=4) + callee(1, 2, 3, d=5)
    return total


class Point:
    """Something with methods."""

    def __init__(self, x: int) -> None:
        self.x = x

    @property
    def double(self) -> int:
        """Twice the value."""
        return self.x * 2

    def moved(self, by: int) -> Point:
        """A new one beside it."""
        return type(self)(self.x + by)


def methods(n: int) -> int:
    """Objects made, a method and a property."""
    point = Point(0)
    total = 0
    for _ in range(n):
        point = point.moved(1)
        total += point.double
    return total


def closures(n: int) -> int:
    """A cell shared by two functions."""
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    for _ in range(n):
        add()
    return count


KNOWN = 3


def variables(n: int) -> int:
    """Reads and writes of locals, cells, globals and attributes."""
    global KNOWN
    shared = 1
    point = Point(2)

    def step(local: int) -> int:
        nonlocal shared
        global KNOWN
        other = local
        shared = other & 7
        KNOWN = shared
        point.x = KNOWN
        return other + shared + point.x

    total = 0
    for i in range(n):
        total += step(i)
    KNOWN = 3
    return total


def fibonacci(n: int) -> int:
    """Recursion."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursion(n: int) -> int:
    """Calls that call."""
    total = 0
    for _ in range(n // 100 + 1):
        total += fibonacci(8)
    return total


def comprehensions(n: int) -> int:
    """Three comprehensions."""
    total = 0
    for _ in range(n // 10 + 1):
        numbers = [i * 2 for i in range(10)]
        total += len({i & 3 for i in numbers}) + len({i: i for i in numbers})
    return total


@contextmanager
def managed() -> Iterator[int]:
    """A manager from a generator."""
    try:
        yield 1
    finally:
        small(0)


def with_generator(n: int) -> int:
    """A `with` whose manager is a generator."""
    total = 0
    for _ in range(n):
        with managed() as one:
            total += one
    return total


def numbers_up_to(n: int) -> Iterator[int]:
    """A generator."""
    i = 0
    while i < n:
        yield i
        i += 1


def delegated(n: int) -> Iterator[int]:
    """A generator that delegates."""
    yield from numbers_up_to(n)


def generators(n: int) -> int:
    """A generator read by a loop."""
    total = 0
    for i in numbers_up_to(n):
        total += i
    return total


def generators_delegating(n: int) -> int:
    """A generator behind `yield from`."""
    return sum(delegated(n))


async def add_one(x: int) -> int:
    """A coroutine that waits for nothing."""
    return x + 1


async def count_up(n: int) -> int:
    """Awaits in a loop."""
    total = 0
    for _ in range(n):
        total = await add_one(total)
    return total


async def stream(n: int) -> AsyncIterator[int]:
    """An asynchronous generator."""
    for i in range(n):
        yield i


async def read(n: int) -> int:
    """Reads an asynchronous generator."""
    total = 0
    async for i in stream(n):
        total += i
    return total


def driven(coroutine: Coroutine[None, None, int]) -> int:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return int(end.value)
    raise AssertionError("it waits")


def coroutines(n: int) -> int:
    """Coroutines awaited in a loop."""
    return driven(count_up(n))


def asynchronous_generators(n: int) -> int:
    """An asynchronous generator read by a loop."""
    return driven(read(n))


def try_without_exception(n: int) -> int:
    """A `try` in which nothing is raised."""
    total = 0
    for i in range(n):
        try:
            total += i
        except ValueError:
            total = 0
        finally:
            total &= 0xFFFF
    return total


def handled_raise(n: int) -> int:
    """An exception raised and handled in the loop's body."""
    count = 0
    for i in range(n):
        try:
            raise ValueError(i)
        except ValueError:
            count += 1
    return count


def handled_from_c(n: int) -> int:
    """A KeyError raised in C and handled."""
    count = 0
    known: dict[int, int] = {}
    for i in range(n):
        try:
            count += known[i]
        except KeyError:
            count += 1
    return count


def handled_second_clause(n: int) -> int:
    """The second clause takes it, and it has a name."""
    count = 0
    for i in range(n):
        try:
            count += 1 // (i - i)
        except (KeyError, IndexError):
            count = 0
        except ArithmeticError as error:
            count += len(error.args)
    return count


def handled_around_loop(n: int) -> int:
    """A `try` around a loop that an exception ends."""
    count = 0
    numbers = list(range(10))
    for _ in range(n // 10 + 1):
        i = 0
        try:
            while True:
                count += numbers[i]
                i += 1
        except IndexError:
            count += 1
    return count


def handled_behind_finally(n: int) -> int:
    """A clean-up between the exception and the clause that takes it: here a barrier is met."""
    count = 0
    for i in range(n):
        try:
            try:
                raise ValueError(i)
            finally:
                count += 1
        except ValueError:
            count += 1
    return count


def handled_outside_with(n: int) -> int:
    """A `with` between the exception and the clause that takes it: here a barrier is met."""
    count = 0
    manager = Manager()
    for i in range(n):
        try:
            with manager:
                raise ValueError(i)
        except ValueError:
            count += 1
    return count


def handled_in_long_function(n: int) -> int:
    """The interpreter reads the exception table from the start, and this is far behind it."""
    count = 0
    manager = Manager()
    if n < 0:
        for i in range(n):
            with manager:
                count += small(i)
            count += small(count)
            with manager:
                count += small(i)
            for j in range(i):
                count += small(j)
            with manager:
                count += small(i)
            while count < i:
                with manager:
                    count += small(i)
            try:
                count += small(i)
            finally:
                count += 1
            with manager:
                count += small(i)
    known: dict[int, int] = {}
    for i in range(n):
        try:
            count += known[i]
        except KeyError:
            count += 1
    return count


def match_statement(n: int) -> int:
    """Patterns."""
    total = 0
    shapes: list[object] = [(1, 2), {"x": 3}, 4, "five"]
    for i in range(n):
        match shapes[i & 3]:
            case (int(x), int(y)):
                total += x + y
            case {"x": int(x)}:
                total += x
            case int(x):
                total += x
            case _:
                total += 5
    return total


#: Those in whose run a barrier is met: what they cost is a crossing, not the normal path.
MEETING = frozenset({"handled_behind_finally", "handled_outside_with"})

#: Those that meet one when their loop ends: an `async for` is ended by an exception in the same function.
MEETING_AT_END = frozenset({"asynchronous_generators"})

#: What is measured.
NORMAL = (
    a1_nested_for,
    a2_flat_for,
    a3_while,
    a4_long_body,
    a5_triple_nested,
    a6_work_in_callee,
    b1_for_pass,
    b2_for_add,
    b3_while_add,
    b4_with,
    b5_call,
    call_with_keywords,
    methods,
    closures,
    variables,
    recursion,
    comprehensions,
    match_statement,
    with_generator,
    generators,
    generators_delegating,
    coroutines,
    asynchronous_generators,
    try_without_exception,
    handled_raise,
    handled_from_c,
    handled_second_clause,
    handled_around_loop,
    handled_in_long_function,
    handled_behind_finally,
    handled_outside_with,
)
