"""What the systematic grid is composed of: frames, blocks, statements and origins of the exception.

Each is a piece of program text. In a frame, ``BODY`` stands for a block; in a block, for a statement; in a
statement, ``CRASH`` stands for an expression that fails when the plan says so and else has the value of ``i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Part:
    """A piece of program text.

    Attributes:
        name: what it is.
        text: the text.
        needs: what a frame must allow for it: ``return``, ``yield``, ``await``.
        gives: what a frame allows.
        forbids: what cannot stand in it.
        prelude: definitions that it needs at the top of the module.
        without: remedies that are not tried.
        why: why they are not.
    """

    name: str
    text: str
    needs: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()
    forbids: frozenset[str] = frozenset()
    prelude: str = ""
    without: frozenset[str] = frozenset()
    why: str = ""


def _part(
    name: str,
    text: str,
    needs: str = "",
    *,
    gives: str = "",
    forbids: str = "",
    prelude: str = "",
    without: str = "",
    why: str = "",
) -> Part:
    return Part(
        name,
        dedent(text).strip("\n"),
        frozenset(needs.split()),
        frozenset(gives.split()),
        frozenset(forbids.split()),
        dedent(prelude).strip("\n"),
        frozenset(without.split()),
        why,
    )


SETUP = "knob = total = 0; x = y = None; data = {0: 0, 1: 1, 2: 2, 5: 5, 9: 9}; box = Box(value=0)"

FRAMES = (
    _part(
        "module",
        """
        say("start")
        i = 5
        SETUP
        BODY
        say("end", i, total, x, y, data, box.value)
        """,
    ),
    _part(
        "function",
        """
        def run(i):
            SETUP
            BODY
            say("end", i, total, x, y, data, box.value)
            return total

        def main():
            say("start")
            result = run(5)
            say("result", result)
            return result
        """,
        gives="return",
    ),
    _part(
        "function without source",
        """
        def run(i, *rest, extra=None):
            SETUP
            BODY
            say("end", i, total, x, y, data, box.value, rest, extra)
            return total

        def main():
            say("start")
            return say("result", run(5, 6, extra=7))
        """,
        gives="return",
    ),
    _part(
        "method",
        """
        class Base:
            def __init__(self):
                self.__seen = []

            def run(self, i):
                self.__seen.append(i)
                return len(self.__seen)

        class Runner(Base):
            def run(self, i):
                SETUP
                BODY
                say("end", i, total, x, y, data, box.value)
                return super().run(i) + total

        def main():
            say("start")
            return say("result", Runner().run(5))
        """,
        gives="return",
    ),
    _part(
        "closure",
        """
        def make():
            x = y = total = None
            def run(i):
                nonlocal x, y, total
                SETUP
                BODY
                say("end", i, total, x, y, data, box.value)
                return total
            return run, lambda: (x, y, total)

        def main():
            say("start")
            run, look = make()
            result = run(5)
            say("result", result, look())
            return result
        """,
        gives="return",
    ),
    _part(
        "function with captured locals",
        """
        def run(i):
            SETUP
            def look():
                return i, total, x, y
            BODY
            say("end", i, total, x, y, data, box.value)
            return look

        def main():
            say("start")
            look = run(5)
            say("result", look() if callable(look) else look)
        """,
        gives="return",
    ),
    _part(
        "recursive function",
        """
        def run(i, depth):
            SETUP
            say("in", depth)
            if depth > 0:
                total += run(i + 1, depth - 1) or 0
            BODY
            say("end", depth, i, total, x, y, data, box.value)
            return total

        def main():
            say("start")
            return say("result", run(5, 1))
        """,
        gives="return",
    ),
    _part(
        "generator",
        """
        def run(i):
            SETUP
            got = yield "first"
            say("got", got)
            BODY
            yield "last"
            say("end", i, total, x, y, data, box.value)
            return total

        def outer():
            result = yield from run(5)
            say("result", result)

        def main():
            say("start")
            for item in outer():
                say("item", item)
        """,
        gives="return yield",
    ),
    _part(
        "context manager generator",
        """
        import contextlib

        @contextlib.contextmanager
        def run(i):
            SETUP
            BODY
            say("before")
            try:
                yield total
            finally:
                say("end", i, total, x, y, data, box.value)

        def main():
            say("start")
            with run(5) as result:
                say("result", result)
        """,
    ),
    _part(
        "coroutine",
        """
        async def run(i):
            SETUP
            await later()
            BODY
            await later()
            say("end", i, total, x, y, data, box.value)
            return total

        def main():
            say("start")
            return say("result", drive(run(5)))
        """,
        gives="return await",
    ),
    _part(
        "task of asyncio",
        """
        import asyncio

        async def run(i):
            SETUP
            await asyncio.sleep(0)
            BODY
            await asyncio.sleep(0)
            say("end", i, total, x, y, data, box.value)
            return total

        async def gather():
            task = asyncio.create_task(run(5))
            return await task

        def main():
            say("start")
            return say("result", asyncio.run(gather()))
        """,
        gives="return await",
    ),
    _part(
        "asynchronous generator",
        """
        async def run(i):
            SETUP
            got = yield "first"
            say("got", got)
            BODY
            yield "last"
            say("end", i, total, x, y, data, box.value)

        async def consume():
            async for item in run(5):
                say("item", item)

        def main():
            say("start")
            return drive(consume())
        """,
        gives="yield await",
    ),
    _part(
        "class body",
        """
        def main():
            say("start")
            class Body:
                i = 5
                SETUP
                BODY
                say("end", i, total, x, y, data, box.value)
            return say("result", sorted(name for name in vars(Body) if not name.startswith("_")))
        """,
    ),
    _part(
        "callback of library code",
        """
        def run(i):
            SETUP
            BODY
            say("end", i, total, x, y, data, box.value)
            return total

        def main():
            say("start")
            return say("result", call_it(run, 5), list(map(run, (6,))))
        """,
        gives="return",
    ),
    _part(
        "thread",
        """
        def run(i):
            SETUP
            BODY
            say("end", i, total, x, y, data, box.value)
            return total

        def main():
            say("start")
            return say("result", in_thread(run, 5))
        """,
        gives="return",
    ),
)

STATEMENTS = (
    _part("assignment", "x = CRASH\nsay('x', x)"),
    _part("augmented assignment", "total += CRASH\nsay('total', total)"),
    _part("augmented assignment of an item", "data[0] += CRASH\nsay('data', data)"),
    _part("augmented assignment of an attribute", "box.value += CRASH\nsay('box', box.value)"),
    _part("item as target", "data[CRASH] = 3\nsay('data', data)"),
    _part("tuple assignment", "x, y = CRASH, total\nsay('x', x, y)"),
    _part("star-unpacking", "x, *y = [CRASH, 2, 3]\nsay('x', x, y)"),
    _part("annotated assignment", "x: int = CRASH\nsay('x', x)"),
    _part("chained targets", "x = y = CRASH\nsay('x', x, y)"),
    _part("walrus", "if (x := CRASH) is not None:\n    say('x', x)"),
    _part("call", "say('call', CRASH)"),
    _part("call with stars", "say(*['call', CRASH], **{})"),
    _part("nested call", "x = max(work(CRASH), 2)\nsay('x', x)"),
    _part("method call", "data.update({1: CRASH})\nsay('data', data)"),
    _part("f-string", "say(f'<{CRASH!r:>4}|{total}>')"),
    _part("return", "return CRASH", "return"),
    _part("yield", "yield CRASH\nsay('resumed')", "yield"),
    _part("yield as a value", "x = yield CRASH\nsay('got', x)", "yield"),
    _part("await", "x = await later(CRASH)\nsay('x', x)", "await"),
    _part("del", "data[7] = 1\nsay('made')\ndel data[7 + 0 * CRASH]\nsay('deleted', data)"),
    _part("assert", "assert CRASH is not None, 'text'\nsay('asserted')"),
    _part(
        "with header",
        "with Box2(CRASH) as x:\n    say('x', x)",
        prelude="Box2 = __import__('contextlib').nullcontext",
    ),
    _part("for header", "for x in [CRASH, 8]:\n    say('x', x)\nelse:\n    say('else of header')"),
    _part("while header", "x = 0\nwhile x * (CRASH + 1) < 7:\n    x += 1\n    say('x', x)"),
    _part("if header", "if CRASH is None:\n    say('none')\nelse:\n    say('some')"),
    _part(
        "elif header",
        "if total < 0:\n    say('less')\nelif CRASH is None:\n    say('none')\nelse:\n    say('some')",
    ),
    _part(
        "match header", "match CRASH:\n    case None:\n        say('none')\n    case x:\n        say('x', x)"
    ),
    _part(
        "guard of a case",
        "match total:\n    case x if CRASH is None:\n        say('none')\n    case x:\n        say('x', x)",
    ),
    _part(
        "decorator",
        "@mark(CRASH)\ndef local():\n    return 3\nsay('local', local())",
        prelude="def mark(value):\n    return lambda function: lambda: (function(), value)",
    ),
    _part("default of a parameter", "def local(value=CRASH):\n    return value\nsay('local', local())"),
    _part("several statements on a line", "x = 1; y = CRASH; say('y', x, y)"),
    _part("chained comparison", "x = 0 <= CRASH <= 100\nsay('x', x)"),
    _part("conditional expression", "x = (CRASH if data else 0) + (1 if total >= 0 else 2)\nsay('x', x)"),
    _part("boolean operators", "x = data and (None or CRASH)\nsay('x', x)"),
    _part("dict display", "x = {'a': 1, **{'b': CRASH}}\nsay('x', x)"),
    _part("slice", "x = [1, 2, 3][0 * CRASH:2]\nsay('x', x)"),
    _part("several lines", "x = work(\n    max(\n        1,\n        CRASH,\n    )\n)\nsay('x', x)"),
    _part("loads of two names", "x = CRASH; y = x\nsay('y', x, y)"),
)

BLOCKS = (
    _part("straight", "BODY"),
    _part("for over a range", "for i in range(2):\n    BODY\n    say('turn', i)\nelse:\n    say('else')"),
    _part("for over a list", "for i in [1, 2]:\n    BODY\n    say('turn', i)"),
    _part("for over a tuple", "for i in (1, 2):\n    BODY\n    say('turn', i)"),
    _part("for over a text", "for y in 'ab':\n    BODY\n    say('turn', y)"),
    _part("for over a generator", "for i in (j + 1 for j in range(2)):\n    BODY\n    say('turn', i)"),
    _part("for over pairs", "for y, i in enumerate([1, 2]):\n    BODY\n    say('turn', y, i)"),
    _part("while", "n = 0\nwhile n < 2:\n    n += 1\n    BODY\n    say('turn', n)\nelse:\n    say('else')"),
    _part(
        "while True", "n = 0\nwhile True:\n    n += 1\n    BODY\n    if n > 1:\n        break\nsay('left')"
    ),
    _part("nested for", "for y in range(2):\n    for i in [1, 2]:\n        BODY\n        say('turn', y, i)"),
    _part("with", "with Sound('a'):\n    BODY\n    say('in with')"),
    _part(
        "nested with",
        "with Sound('a') as a:\n    with Sound('b'):\n        BODY\n        say('in with', a.name)",
    ),
    _part(
        "with of two", "with Sound('a') as a, Sound('b') as b:\n    BODY\n    say('in with', a.name, b.name)"
    ),
    _part("with that swallows", "with Swallow('a'):\n    BODY\n    expected()\nsay('swallowed')"),
    _part("try, no clause matches", "try:\n    BODY\n    say('in try')\nexcept KeyError:\n    say('no')"),
    _part(
        "try, a clause matches something else",
        "try:\n    BODY\n    expected()\nexcept (KeyError, Expected) as error:\n    say('handled', error)",
    ),
    _part(
        "try, clean-up and raise",
        "try:\n    BODY\n    say('in try')\nexcept BaseException as error:\n    say('clean-up', error)\n    raise",
    ),
    _part(
        "else of try",
        "try:\n    say('in try')\nexcept Expected:\n    say('no')\nelse:\n    BODY\n    say('in else')\nfinally:\n    say('finally')",
    ),
    _part("try with finally", "try:\n    BODY\n    say('in try')\nfinally:\n    say_context('finally')"),
    _part("finally body", "try:\n    say('in try')\nfinally:\n    BODY\n    say_context('finally')"),
    _part(
        "finally body, exception on its way",
        "try:\n    try:\n        expected()\n    finally:\n        BODY\n        say_context('finally')\nexcept Expected as error:\n    say('handled', error)",
    ),
    _part(
        "except body",
        "try:\n    expected()\nexcept Expected as error:\n    BODY\n    say_context('in except', error)",
    ),
    _part(
        "except body that raises again",
        "try:\n    try:\n        expected()\n    except Expected:\n        BODY\n        raise\nexcept Expected as error:\n    say_context('handled', error)",
    ),
    _part(
        "nested except body",
        "try:\n    expected('1')\nexcept Expected:\n    try:\n        {}['key']\n    except KeyError:\n        BODY\n        say_context('inner')\n    say_context('outer')",
    ),
    _part(
        "except* body",
        "try:\n    raise ExceptionGroup('group', [Expected('1'), KeyError('2')])\nexcept* KeyError as error:\n    say('keys', error.exceptions)\nexcept* Expected as error:\n    BODY\n    say_context('in except*')",
        forbids="return",
    ),
    _part("else of for", "for i in [1, 2]:\n    say('turn', i)\nelse:\n    BODY\n    say('else')"),
    _part(
        "for with break",
        "for i in [1, 2, 3]:\n    BODY\n    if i == 2:\n        break\nelse:\n    say('no')\nsay('left', i)",
    ),
    _part(
        "for with continue",
        "for i in [1, 2, 3]:\n    if i == 2:\n        continue\n    BODY\n    say('turn', i)",
    ),
    _part("if body", "if total == 0:\n    BODY\n    say('in if')\nelse:\n    say('no')"),
    _part("elif body", "if total:\n    say('no')\nelif data:\n    BODY\n    say('in elif')"),
    _part(
        "match body",
        "match [1, {'key': 4}]:\n    case [1, {'key': i}]:\n        BODY\n        say('in case', i)",
    ),
    _part(
        "loop in except body",
        "try:\n    expected()\nexcept Expected:\n    for i in [1, 2]:\n        BODY\n        say_context('turn', i)",
    ),
    _part(
        "with in for in try",
        "try:\n    for i in [1, 2]:\n        with Sound(i):\n            BODY\n            say('turn', i)\nfinally:\n    say('finally')",
    ),
    _part(
        "break through finally",
        "for i in [1, 2]:\n    try:\n        BODY\n        break\n    finally:\n        say('finally', i)\nsay('left')",
    ),
    _part(
        "continue through with",
        "for i in [1, 2]:\n    with Sound(i):\n        BODY\n        continue\nsay('left')",
    ),
    _part("async for", "async for i in Calm(2):\n    BODY\n    say('turn', i)", "await"),
    _part("async with", "async with Sound('a') as a:\n    BODY\n    say('in with', a.name)", "await"),
)

_CALLEE = """
def callee(v):
    w = v
    w = crash(v)
    say("callee", w)
    return w
"""

ORIGINS = (
    _part("raise", "crash(i, knob)"),
    _part("C", "(i // unit(knob))"),
    _part("callee", "callee(i)", prelude=_CALLEE),
    _part(
        "callee inside blocks",
        "sheltered(i)",
        prelude="""
        def sheltered(v):
            w = v
            for turn in range(2):
                try:
                    with Sound(turn):
                        w = crash(v)
                        say("sheltered", w)
                finally:
                    say_context("leaving")
            return w
        """,
    ),
    _part(
        "generator",
        "next(source(i))",
        prelude="""
        def source(v):
            w = v
            w = crash(v)
            say("source", w)
            yield w
        """,
    ),
    _part(
        "generator within a generator",
        "[*outer_source(i)][-1]",
        prelude="""
        def source(v):
            for turn in [1, 2]:
                w = v
                w = crash(v)
                say("source", w)
                yield w

        def outer_source(v):
            for w in source(v):
                say("outer", w)
                yield w
            yield from source(v)
        """,
    ),
    _part("lambda", "(lambda v: say(crash(v)))(i)", without="skip", why="a lambda has one statement only"),
    _part("list comprehension", "[crash(v) for v in (i,)][0]"),
    _part(
        "generator expression",
        "max(crash(v) for v in (i,))",
        without="skip",
        why="a generator expression has no statement",
    ),
    _part(
        "__enter__",
        "entering(i)",
        prelude="""
        def entering(v):
            w = v
            with Guard("entering", "enter", v) as guard:
                w = guard.value
                say("inside", w)
            return w
        """,
    ),
    _part(
        "second __enter__",
        "entering(i)",
        prelude="""
        def entering(v):
            w = v
            with Sound("first"), Guard("second", "enter", v) as guard:
                w = guard.value
                say("inside", w)
            return w
        """,
        without="skip",
        why="a skipped `with` leaves its first manager, which sees no exception; the plain program cannot show that",
    ),
    _part(
        "__exit__",
        "leaving(i)",
        prelude="""
        def leaving(v):
            w = v
            with Guard("leaving", "exit", v) as guard:
                w = guard.value
                say("inside", w)
            say("outside")
            return w
        """,
        without="surgery",
        why="the manager that fails is live: an edit of the header does not replace it",
    ),
    _part(
        "__enter__ of the program",
        "entering(i)",
        prelude="""
        class Manager:
            def __init__(self, v):
                self.v = v

            def __enter__(self):
                say("opening")
                w = self.v
                w = crash(self.v)
                say("opened", w)
                return w

            def __exit__(self, *details):
                say("closed", details[1])

        def entering(v):
            with Manager(v) as w:
                say("inside", w)
            return w
        """,
    ),
    _part(
        "property",
        "Probe(i).value",
        prelude="""
        class Probe:
            def __init__(self, v):
                self.v = v

            @property
            def value(self):
                w = self.v
                w = crash(self.v)
                say("probe", w)
                return w
        """,
    ),
    _part(
        "iterator of the program",
        "[*Steps(i)][0]",
        prelude="""
        class Steps:
            def __init__(self, v):
                self.v, self.left = v, 2

            def __iter__(self):
                return self

            def __next__(self):
                if not self.left:
                    raise StopIteration
                w = self.v
                w = crash(self.v)
                self.left -= 1
                say("step", w)
                return w
        """,
    ),
    _part("callback of C code", "sorted([i], key=callee)[0]", prelude=_CALLEE),
    _part("callback of library code", "call_it(callee, i)", prelude=_CALLEE),
    _part("thread", "in_thread(callee, i)", prelude=_CALLEE),
    _part(
        "for header's next step",
        "summed(i)",
        prelude="""
        def summed(v):
            w = v
            for step in Stream(2):
                w = v + 0 * step
                say("step", step)
            return w
        """,
        without="surgery",
        why="the iterator that fails is live: an edit of the header does not replace it",
    ),
    _part(
        "import",
        "importing(i)",
        prelude="""
        def importing(v):
            value = 0
            from flaky_module import value
            say("imported", value)
            return v
        """,
    ),
    _part(
        "coroutine",
        "await acallee(i)",
        "await",
        prelude="""
        async def acallee(v):
            w = v
            await later()
            w = await later(crash(v))
            say("acallee", w)
            return w
        """,
    ),
    _part(
        "asynchronous generator",
        "await first_of(i)",
        "await",
        prelude="""
        async def asource(v):
            w = v
            for turn in [1, 2]:
                w = crash(v)
                say("asource", w)
                yield w

        async def first_of(v):
            total = []
            async for w in asource(v):
                total.append(w)
            return total[0]
        """,
    ),
)
