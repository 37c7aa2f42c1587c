"""Small programs that crash, for tests of the verdict, and how they end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

#: What the programs see beside builtins. `crash(X)` raises, having asked for the verdict on behalf of its caller.
PRELUDE = """
import contextlib, os, sys, types
from contextlib import suppress, contextmanager, ExitStack, closing, nullcontext

class Mine(Exception): pass
class Narrow(Mine): pass
class Quiet:
    def __enter__(self): return self
    def __exit__(self, *about): return True
class Loud:
    def __enter__(self): return self
    def __exit__(self, *about): print(end="")
class Picky:
    def __init__(self, *kinds): self.kinds = kinds
    def __enter__(self): return self
    def __exit__(self, kind, value, traceback): return kind is not None and issubclass(kind, self.kinds)
class Careful:
    def __enter__(self): return self
    def __exit__(self, kind, value, traceback):
        if kind is None: return False
        return False
def log(*_): pass
table = {}
kinds = (KeyError, ValueError)
errors = types.SimpleNamespace(mine=Mine, many=kinds)
"""

# Each program is a function body; "+" marks those whose exception is handled somewhere.
PROGRAMS = """
--- plain
crash(KeyError)
--- + except
try: crash(KeyError)
except KeyError: pass
--- + base class
try: crash(KeyError)
except LookupError: pass
--- other class
try: crash(KeyError)
except ValueError: pass
--- + bare
try: crash(KeyError)
except: pass
--- + second clause
try: crash(KeyError)
except ValueError: pass
except KeyError as e: log(e)
--- first clause cleans up, second would catch all
try: crash(KeyError)
except KeyError: raise
except: pass
--- + tuple
try: crash(KeyError)
except (ValueError, KeyError): pass
--- nested tuple is not valid
try: crash(KeyError)
except (ValueError, (KeyError, OSError)): pass
--- + global tuple
try: crash(KeyError)
except kinds: pass
--- + attribute
try: crash(Mine)
except errors.mine: pass
--- + attribute of a module
try: crash(OSError)
except os.error: pass
--- + tuple attribute
try: crash(KeyError)
except errors.many: pass
--- + local type
wanted = KeyError
try: crash(KeyError)
except wanted: pass
--- + cell type
wanted = KeyError
def inner():
    try: crash(KeyError)
    except wanted: pass
inner()
--- cell type, other
wanted = ValueError
def inner():
    try: crash(KeyError)
    except wanted: pass
inner()
--- + sum of tuples
try: crash(OSError)
except kinds + (OSError,): pass
--- sum of tuples, other
try: crash(TypeError)
except kinds + (OSError,): pass
--- class attribute
class Owner: error = ValueError
try: crash(KeyError)
except Owner.error: pass
--- + class attribute matches
class Owner: error = KeyError
try: crash(KeyError)
except Owner.error: pass
--- + attribute of self
class Owner:
    error = KeyError
    def work(self):
        try: crash(KeyError)
        except self.error: pass
Owner().work()
--- + instance attribute of self
class Owner:
    def __init__(self): self.error = KeyError
    def work(self):
        try: crash(KeyError)
        except self.error: pass
Owner().work()
--- attribute of self, other
class Owner:
    def __init__(self): self.error = OSError
    def work(self):
        try: crash(KeyError)
        except self.error: pass
Owner().work()
--- + slot
class Owner:
    __slots__ = ("error",)
    def __init__(self): self.error = KeyError
    def work(self):
        try: crash(KeyError)
        except self.error: pass
Owner().work()
--- log and raise
try: crash(KeyError)
except KeyError: log(); raise
--- log and raise the name
try: crash(KeyError)
except KeyError as e: log(); raise e
--- log and raise the name from None
try: crash(KeyError)
except KeyError as e:
    log()
    raise e from None
--- with_traceback
try: crash(KeyError)
except KeyError as e: raise e.with_traceback(None)
--- bare log and raise
try: crash(KeyError)
except: log(); raise
--- + sometimes raises
try: crash(KeyError)
except KeyError as e:
    if table: raise
--- clean-up with a try of its own
try: crash(KeyError)
except KeyError:
    try: log()
    except OSError: pass
    raise
--- clean-up with a loop
try: crash(KeyError)
except KeyError:
    for i in range(3): log(i)
    raise
--- clean-up in a with
try: crash(KeyError)
except KeyError:
    with Loud():
        log()
        raise
--- + return in a clause
try: crash(KeyError)
except KeyError: return 1
--- + break in a clause
for i in range(3):
    try: crash(KeyError)
    except KeyError: break
--- + continue in a clause
for i in range(3):
    try: crash(KeyError)
    except KeyError: continue
--- + while with retries
n = 0
while n < 3:
    try: crash(KeyError)
    except KeyError as e: n += 1
--- converted, nobody handles that either
try: crash(KeyError)
except KeyError as e: raise RuntimeError("x") from e
--- + converted, handled as such
try:
    try: crash(KeyError)
    except KeyError as e: raise RuntimeError("x") from e
except RuntimeError: pass
--- converted, handled only as what it was
try:
    try: crash(KeyError)
    except KeyError as e: raise RuntimeError("x") from e
except KeyError: pass
--- + converted to a class of the program
def inner():
    try: crash(KeyError)
    except KeyError: raise Narrow
try: inner()
except Mine: pass
--- finally
try: crash(KeyError)
finally: log()
--- finally with a try inside
try: crash(KeyError)
finally:
    try: log()
    except KeyError: pass
--- + finally in try
try:
    try: crash(KeyError)
    finally: log()
except KeyError: pass
--- + try in finally's way
try:
    try: crash(KeyError)
    except ValueError: pass
    finally: log()
except LookupError: pass
--- try, except, else, finally
try: crash(KeyError)
except ValueError: pass
else: log()
finally: log()
--- crash in else
try: log()
except KeyError: pass
else: crash(KeyError)
--- crash in a clause
try: raise ValueError
except ValueError: crash(KeyError)
except KeyError: pass
--- + crash in a clause, handled around
try:
    try: raise ValueError
    except ValueError as e: crash(KeyError)
except KeyError: pass
--- crash in finally
try: log()
finally: crash(KeyError)
--- + caller
def inner(): crash(KeyError)
try: inner()
except KeyError: pass
--- caller, other
def inner(): crash(KeyError)
try: inner()
except ValueError: pass
--- + caller's caller, with clean-up between
def one(): crash(KeyError)
def two():
    try: one()
    except KeyError: log(); raise
def three():
    with Loud(): two()
try: three()
except LookupError: pass
--- + caller in a loop
def inner(i):
    if i == 2: crash(KeyError)
for i in range(4):
    try: inner(i)
    except KeyError: pass
--- + except star
try: crash(KeyError)
except* KeyError: pass
--- except star, other
try: crash(KeyError)
except* ValueError: pass
--- + except star, name and body
try: crash(KeyError)
except* KeyError as e: log(e)
--- except star raises again
try: crash(KeyError)
except* KeyError: raise
--- + except star, two clauses
try: crash(KeyError)
except* ValueError: log()
except* KeyError: log()
--- group, except star takes part of it
try: crash(ExceptionGroup("g", [KeyError(), ValueError()]))
except* KeyError: pass
--- + group, except star takes all
try: crash(ExceptionGroup("g", [KeyError(), ExceptionGroup("h", [ValueError()])]))
except* KeyError: pass
except* ValueError as e: log(e)
--- + group, rest is taken outside
try:
    try: crash(ExceptionGroup("g", [KeyError(), ValueError()]))
    except* KeyError: pass
except* ValueError: pass
--- group, rest is not taken outside
try:
    try: crash(ExceptionGroup("g", [KeyError(), ValueError()]))
    except* KeyError: pass
except* KeyError: pass
--- + group by except
try: crash(ExceptionGroup("g", [KeyError()]))
except ExceptionGroup: pass
--- group is no KeyError
try: crash(ExceptionGroup("g", [KeyError()]))
except KeyError: pass
--- + re-raised group
try:
    try: crash(KeyError)
    except* KeyError: raise
except ExceptionGroup: pass
--- with
with Loud(): crash(KeyError)
--- with as
with Loud() as x: crash(KeyError)
--- careful with
with Careful() as x: crash(KeyError)
--- with file
with open(os.devnull) as f: crash(KeyError)
--- + with that stops
with Quiet(): crash(KeyError)
--- + with that stops, in a variable
manager = Quiet()
with manager: crash(KeyError)
--- + two withs, outer stops
with Quiet(), Loud(): crash(KeyError)
--- + picky with
with Picky(KeyError) as p: crash(KeyError)
--- + with in try
try:
    with Loud(): crash(KeyError)
except KeyError: pass
--- + suppress
with suppress(KeyError): crash(KeyError)
--- suppress, other
with suppress(ValueError): crash(KeyError)
--- + suppress several
with contextlib.suppress(ValueError, LookupError): crash(KeyError)
--- + suppress in a variable
quiet = suppress(KeyError)
with quiet: crash(KeyError)
--- suppress in a variable, other
quiet = suppress(OSError)
with quiet: crash(KeyError)
--- + suppress with stars
with suppress(*kinds): crash(KeyError)
--- + suppress in the caller
def inner(): crash(KeyError)
with suppress(KeyError): inner()
--- + suppress around a loop
with suppress(KeyError):
    for i in range(3): crash(KeyError)
--- nullcontext
with nullcontext(): crash(KeyError)
--- closing
with closing(open(os.devnull)): crash(KeyError)
--- contextmanager
@contextmanager
def manager():
    try: yield
    finally: log()
with manager(): crash(KeyError)
--- contextmanager that cleans up
@contextmanager
def manager():
    try: yield
    except KeyError: log(); raise
with manager(): crash(KeyError)
--- + contextmanager that catches
@contextmanager
def manager():
    try: yield
    except KeyError: log()
with manager(): crash(KeyError)
--- contextmanager that catches another
@contextmanager
def manager():
    try: yield
    except OSError: log()
with manager(): crash(KeyError)
--- + contextmanager with suppress in it
@contextmanager
def manager():
    with suppress(KeyError): yield
quiet = manager()
with quiet: crash(KeyError)
--- + ExitStack with suppress
with ExitStack() as stack:
    stack.enter_context(suppress(KeyError))
    crash(KeyError)
--- ExitStack without
with ExitStack() as stack:
    stack.enter_context(Loud())
    crash(KeyError)
--- + a method's with
class Owner:
    @contextmanager
    def quiet(self):
        try: yield self
        except KeyError: pass
    def work(self):
        with self.quiet() as me: crash(KeyError)
Owner().work()
--- + hasattr
class Lazy:
    def __getattr__(self, name): crash(AttributeError)
hasattr(Lazy(), "x")
--- + hasattr of a property
class Lazy:
    @property
    def x(self): crash(AttributeError)
hasattr(Lazy(), "x")
--- hasattr of a property, other exception
class Lazy:
    @property
    def x(self): crash(KeyError)
hasattr(Lazy(), "x")
--- + hasattr under another name
has = hasattr
class Lazy:
    def __getattr__(self, name): crash(AttributeError)
has(Lazy(), "x")
--- + getattr with default
class Lazy:
    def __getattr__(self, name): crash(AttributeError)
getattr(Lazy(), "x", None)
--- getattr without default
class Lazy:
    def __getattr__(self, name): crash(AttributeError)
getattr(Lazy(), "x")
--- attribute
class Lazy:
    def __getattr__(self, name): crash(AttributeError)
Lazy().x
--- property
class Lazy:
    @property
    def x(self): crash(AttributeError)
Lazy().x
--- + property and __getattr__
class Lazy:
    @property
    def x(self): crash(AttributeError)
    def __getattr__(self, name): return 1
Lazy().x
--- + __getattribute__ and __getattr__
class Lazy:
    def __getattribute__(self, name): crash(AttributeError)
    def __getattr__(self, name): return 1
Lazy().x
--- a method of a class with __getattr__
class Lazy:
    def x(self): crash(AttributeError)
    def __getattr__(self, name): return 1
Lazy().x()
--- + converted for hasattr
class Lazy:
    def __getattr__(self, name):
        try: crash(KeyError)
        except KeyError: raise AttributeError(name) from None
hasattr(Lazy(), "x")
--- converted, but asked plainly
class Lazy:
    def __getattr__(self, name):
        try: crash(KeyError)
        except KeyError: raise AttributeError(name) from None
Lazy().x
--- + old iteration protocol
class Old:
    def __getitem__(self, i):
        if i == 3: crash(IndexError)
        return i
for i in Old(): log(i)
--- + old iteration protocol in list
class Old:
    def __getitem__(self, i):
        if i == 3: crash(IndexError)
        return i
list(Old())
--- + old iteration protocol in a comprehension
class Old:
    def __getitem__(self, i):
        if i == 3: crash(IndexError)
        return i
[x for x in Old()]
--- + old iteration protocol, unpacked
class Old:
    def __getitem__(self, i):
        if i == 3: crash(IndexError)
        return i
a, b, c = Old()
--- + old iteration protocol and `in`
class Old:
    def __getitem__(self, i):
        if i == 3: crash(IndexError)
        return i
5 in Old()
--- + old iteration protocol, star
class Old:
    def __getitem__(self, i):
        if i == 3: crash(IndexError)
        return i
print(*Old(), end="")
--- old iteration protocol, other exception
class Old:
    def __getitem__(self, i):
        if i == 3: crash(KeyError)
        return i
for i in Old(): log(i)
--- subscript
class Old:
    def __getitem__(self, i): crash(IndexError)
Old()[3]
--- __getitem__ by name
class Old:
    def __getitem__(self, i): crash(IndexError)
Old().__getitem__(3)
--- + a namespace without a name
class Names(dict):
    def __getitem__(self, name): crash(KeyError)
class Meta(type):
    @classmethod
    def __prepare__(cls, *_): return Names()
class Made(metaclass=Meta): x = len
--- + __length_hint__
class Long:
    def __iter__(self): return iter(())
    def __length_hint__(self): crash(TypeError)
list(Long())
--- through map
list(map(lambda _: crash(KeyError), [1]))
--- + through map
try: list(map(lambda _: crash(KeyError), [1]))
except KeyError: pass
--- through sorted
sorted([2, 1], key=lambda _: crash(KeyError))
--- iterator
class It:
    def __iter__(self): return self
    def __next__(self): crash(KeyError)
for i in It(): log(i)
--- generator
def numbers():
    yield 1
    crash(KeyError)
for i in numbers(): log(i)
--- + generator, consumer handles
def numbers():
    yield 1
    crash(KeyError)
try:
    for i in numbers(): log(i)
except KeyError: pass
--- + generator in generator
def inner():
    yield 1
    crash(KeyError)
def outer():
    try: yield from inner()
    except KeyError: yield 2
list(outer())
--- generator in generator
def inner():
    yield 1
    crash(KeyError)
def outer():
    try: yield from inner()
    finally: log()
list(outer())
--- + generator expression
try: list(crash(KeyError) for i in range(3))
except KeyError: pass
--- comprehension
[crash(KeyError) for i in range(3)]
--- + comprehension
try: {crash(KeyError) for i in range(3)}
except KeyError: pass
--- lambda
(lambda: crash(KeyError))()
--- class body
class Made: crash(KeyError)
--- + class body
try:
    class Made: crash(KeyError)
except KeyError: pass
--- + class body with a try
class Made:
    wanted = KeyError
    try: crash(KeyError)
    except wanted: pass
--- constructor
class Made:
    def __init__(self): crash(KeyError)
Made()
--- + exec
try: exec("crash(KeyError)", {"crash": crash})
except KeyError: pass
--- exec
exec("crash(KeyError)", {"crash": crash})
--- + __del__
class Dying:
    def __del__(self): crash(KeyError)
x = Dying()
del x
--- + __del__ by going out of scope
class Dying:
    def __del__(self): crash(KeyError)
def inner(): x = Dying()
inner()
--- __del__ by name
class Dying:
    armed = True
    def __del__(self):
        if Dying.armed:
            Dying.armed = False
            crash(KeyError)
Dying().__del__()
--- + weak reference's callback
import weakref
class Dying: pass
x = Dying()
r = weakref.ref(x, lambda _: crash(KeyError))
x = None
--- + match
class Point:
    __match_args__ = ("x",)
    @property
    def x(self): crash(AttributeError)
match Point():
    case Point(x=1): pass
--- + deep recursion of try
def go(n):
    if n == 0: crash(KeyError)
    try: go(n - 1)
    except ValueError: pass
try: go(20)
except KeyError: pass
--- + BaseException
class Odd(BaseException): pass
try: crash(Odd)
except BaseException: pass
--- BaseException and except Exception
class Odd(BaseException): pass
try: crash(Odd)
except Exception: pass
--- + loop inside try
try:
    for i in range(3):
        for j in range(3): crash(KeyError)
except KeyError: pass
--- + with in loop in try
try:
    for i in range(3):
        with Loud() as m: crash(KeyError)
except KeyError: pass
--- + try in loop in with
with Loud():
    for i in range(2):
        try: crash(KeyError)
        except KeyError: pass
--- + functools.partial
import functools
try: functools.partial(crash, KeyError)()
except KeyError: pass
--- decorator
import functools
def wrapped(f):
    @functools.wraps(f)
    def wrapper(*args):
        try: return f(*args)
        finally: log()
    return wrapper
@wrapped
def work(): crash(KeyError)
work()
--- + singledispatch and the like
import functools
@functools.lru_cache
def work(x):
    crash(KeyError)
try: work(1)
except KeyError: pass
--- + name bound in a nested clause
try:
    try: raise ValueError
    except ValueError as e:
        try: crash(KeyError)
        finally: log(e)
except KeyError as e: log(e)
--- invalid type
try: crash(KeyError)
except 5: pass
--- + catching with several lines
try:
    log()
    crash(KeyError)
    log()
except (
    ValueError,
    KeyError,
) as e:
    log(e)
--- + only on Python 3.12 and later a different frame
try: [[crash(KeyError) for j in range(2)] for i in range(2)]
except KeyError: pass
"""


# With event loops and thread pools.
ASYNC_PROGRAMS = """
--- coroutine
async def main(): crash(KeyError)
asyncio.run(main())
--- + coroutine handles
async def main():
    try: crash(KeyError)
    except KeyError: pass
asyncio.run(main())
--- + caller handles
async def inner(): crash(KeyError)
async def main():
    try: await inner()
    except KeyError: pass
asyncio.run(main())
--- + around run
async def main(): crash(KeyError)
try: asyncio.run(main())
except KeyError: pass
--- around run, other
async def main(): crash(KeyError)
try: asyncio.run(main())
except ValueError: pass
--- + awaited task
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try: await asyncio.create_task(inner())
    except KeyError: pass
asyncio.run(main())
--- awaited task
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try: await asyncio.create_task(inner())
    finally: log()
asyncio.run(main())
--- + awaited task, handled around run
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main(): await asyncio.create_task(inner())
try: asyncio.run(main())
except KeyError: pass
--- + awaited deep down
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def middle(): await asyncio.create_task(inner())
async def main():
    with suppress(KeyError): await middle()
asyncio.run(main())
--- + gather
async def inner(i):
    await asyncio.sleep(0)
    if i == 1: crash(KeyError)
async def main():
    try: await asyncio.gather(inner(0), inner(1))
    except KeyError: pass
asyncio.run(main())
--- gather
async def inner(i):
    await asyncio.sleep(0)
    if i == 1: crash(KeyError)
async def main():
    try: await asyncio.gather(inner(0), inner(1))
    except ValueError: pass
asyncio.run(main())
--- + gather returns exceptions
async def inner(i):
    await asyncio.sleep(0)
    if i == 1: crash(KeyError)
async def main(): await asyncio.gather(inner(0), inner(1), return_exceptions=True)
asyncio.run(main())
--- + task group
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(inner())
            await asyncio.sleep(10)
    except* KeyError: pass
asyncio.run(main())
--- + task group waits at its end
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try:
        async with asyncio.TaskGroup() as group: group.create_task(inner())
    except ExceptionGroup: pass
asyncio.run(main())
--- task group, inner handler does not count
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(inner())
        try: await asyncio.sleep(10)
        except Exception: pass
asyncio.run(main())
--- task group, taken as what it is not
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try:
        async with asyncio.TaskGroup() as group: group.create_task(inner())
    except KeyError: pass
asyncio.run(main())
--- + wait_for
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try: await asyncio.wait_for(inner(), 10)
    except KeyError: pass
asyncio.run(main())
--- wait_for
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main(): await asyncio.wait_for(inner(), 10)
asyncio.run(main())
--- + shield
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    try: await asyncio.shield(inner())
    except KeyError: pass
asyncio.run(main())
--- + as_completed
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    for done in asyncio.as_completed([inner()]):
        try: await done
        except KeyError: pass
asyncio.run(main())
--- as_completed
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    for done in asyncio.as_completed([inner()]): await done
asyncio.run(main())
--- + async generator
async def numbers():
    yield 1
    crash(KeyError)
async def main():
    try:
        async for i in numbers(): log(i)
    except KeyError: pass
asyncio.run(main())
--- async generator
async def numbers():
    yield 1
    await asyncio.sleep(0)
    crash(KeyError)
async def main():
    async for i in numbers(): log(i)
asyncio.run(main())
--- + task awaited in an async generator
async def inner():
    await asyncio.sleep(0)
    crash(KeyError)
async def numbers(): yield await asyncio.create_task(inner())
async def main():
    try:
        async for i in numbers(): log(i)
    except KeyError: pass
asyncio.run(main())
--- + async with
class Manager:
    async def __aenter__(self): return self
    async def __aexit__(self, *about): return True
async def main():
    async with Manager(): crash(KeyError)
asyncio.run(main())
--- async with
class Manager:
    async def __aenter__(self): return self
    async def __aexit__(self, *about): await asyncio.sleep(0)
async def main():
    async with Manager(): crash(KeyError)
asyncio.run(main())
--- + asynccontextmanager
@contextlib.asynccontextmanager
async def manager():
    try: yield
    except KeyError: pass
async def main():
    async with manager(): crash(KeyError)
asyncio.run(main())
--- asyncio.timeout
async def main():
    async with asyncio.timeout(10): crash(KeyError)
asyncio.run(main())
--- + to_thread
async def main():
    try: await asyncio.to_thread(crash, KeyError)
    except KeyError: pass
asyncio.run(main())
--- to_thread
def work(): crash(KeyError)
async def main(): await asyncio.to_thread(work)
asyncio.run(main())
--- + coroutine driven by hand
async def inner(): crash(KeyError)
try: inner().send(None)
except KeyError: pass
--- + thread pool
from concurrent.futures import ThreadPoolExecutor
def work():
    time.sleep(0.05)
    crash(KeyError)
with ThreadPoolExecutor(1) as pool:
    future = pool.submit(work)
    try: future.result()
    except KeyError: pass
--- thread pool
from concurrent.futures import ThreadPoolExecutor
def work():
    time.sleep(0.05)
    crash(KeyError)
with ThreadPoolExecutor(1) as pool: pool.submit(work).result()
--- + thread pool's map
from concurrent.futures import ThreadPoolExecutor
def work(x):
    time.sleep(0.05)
    crash(KeyError)
with ThreadPoolExecutor(1) as pool:
    try: list(pool.map(work, [1]))
    except KeyError: pass
"""


# Their classes take note of whatever is asked of them.
PRETENDERS = """
--- + metaclass
class Meta(type):
    def __subclasscheck__(cls, other): ran("subclass")
    def __instancecheck__(cls, other): ran("instance")
    def __eq__(cls, other): ran("eq")
    def __hash__(cls): ran("hash"); return 1
    def __getattribute__(cls, name): ran(name); return type.__getattribute__(cls, name)
class Odd(Exception, metaclass=Meta): pass
arm()
try: crash(Odd())
except ValueError: pass
except Odd: pass
--- property
class Owner:
    @property
    def error(self): ran("property"); return KeyError
    def __getattr__(self, name): ran(name)
owner = Owner()
arm()
try: crash(TypeError)
except owner.error: pass
--- + module
class Module(types.ModuleType):
    def __getattr__(self, name): ran(name); return KeyError
module = Module("m")
arm()
try: crash(KeyError)
except module.error: pass
--- __class__
class Pretender:
    @property
    def __class__(self): ran("class"); return type
manager = Pretender()
manager2 = Pretender()
arm()
with nullcontext(manager) as found: crash(KeyError)
--- exception's own
class Odd(Exception):
    @property
    def __class__(self): ran("class"); return ValueError
    def __eq__(self, other): ran("eq")
    def __str__(self): ran("str"); return ""
arm()
try: crash(Odd)
except ValueError: pass
--- + descriptor
class Watching:
    def __get__(self, *_): ran("get"); return KeyError
class Owner: error = Watching()
owner = Owner()
arm()
try: crash(KeyError)
except owner.error: pass
--- + callable of a with
class Factory:
    def __call__(self): ran("call"); return Quiet()
    def __getattr__(self, name): ran(name); raise AttributeError
    def __eq__(self, other): ran("eq")
    def __hash__(self): ran("hash"); return 1
factory = Factory()
quiet = Quiet()
arm()
with quiet, nullcontext(factory) as made: crash(KeyError)
"""


def programs(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yield (title, whether it says to be handled, source of the function) for each program."""
    for part in text.split("--- ")[1:]:
        title, _, body = part.partition("\n")
        yield (
            title.removeprefix("+ "),
            title.startswith("+ "),
            "def program():\n" + textwrap.indent(body, "    "),
        )
