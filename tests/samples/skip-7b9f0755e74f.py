# fmt: off
# mypy: ignore-errors
# oracle: skip
# parameters: {"plan": {"keys": {"15": [3], "18": [1], "24": [3], "42": [2], "48": [3], "78": [2]}, "mode": "keyed"}}
# What went wrong on CPython 3.14.8:
#   events: the statement behind the skipped one was left out as well

import asyncio
g = 0

async def f0(a, b):
    pass
a = b = c = 1
table = {0: 0, 1: 1, 2: 2, 9: 9}
items = [3]
box = Box(x=2)
w = 0
with Sound((23, crash(3, key=24) if 0 > 1 else 0)) as m:
    assert work([crash(v, key=25) for v in range(2)][-1], key=c) is not None, 'text'
    d: int = int(a < 1 <= crash(1, key=26) + 2)
    c = d
    say(27, a, b, c)
    try:
        try:
            pass
        except BaseException as error:
            say(32, error)
            raise
        finally:
            items.append(b - len({v: crash(v, key=33) for v in (a, 5)}))
            del items[0]
            a, b = ({'k': 2, **{'l': 1}}['k'], c)
            say(34, a, b, c)
        raise ExceptionGroup('g', [Expected(35), KeyError(36)])
    except* KeyError:
        with Sound((37, (w := c) + 1)) as m:
            table[1] += {'k': sum([v + 1 for v in Stream(2, key=38)]) + 0, **{'l': 1}}['k']
            say(39, a, b, c)
            say(40, max(*[c // unit(key=41), 1], b // unit(key=42), *(2,)))
            c += 2 or sum([v + 1 for v in Stream(2, key=43)]) + 0
            say(44, a, b, c)
    except* Expected as error:
        with Swallow(45):
            assert int(not c // unit(key=46)) is not None, 'text'
            say(47, a, b, c)
            table[work(2 + [crash(v, key=48) for v in range(2)][-1]) % 3] ^= b
            say(49, a, b, c)
            c = box.x = c - len({v: crash(v, key=50) for v in (c, 5)})
            c += int(not len({v: crash(v, key=51) for v in (3, 5)}))
            say(52, a, b, c)
        say(53, (w := a) + 1)
with Guard(54, 'exit', key=55) as m:
    b = work(a, key=2)
    c = b
    say(56, a, b, c)

def main_function(a, b):
    c = 0
    table = {0: 0, 1: 1, 2: 2, 9: 9}
    items = [3]
    box = Box(x=2)
    w = 0
    say(57, a, b)

    def local58(p, q=a):
        a = b = q
        c = p
        w = 0
        if len(f'{[crash(v, key=59) for v in range(2)][-1]!r:>{1}}|{a}') > 2:
            assert (c or sum([v + 1 for v in Stream(2, key=60)]) + 0) is not None, 'text'
            a += 1 + b
            b = box.x = int(not c // unit(key=61))
        return c
    c = local58(a, 0)
    say(62, a, b, c)
    try:
        table[((w := a) + 1) % 3] ^= 3
        say(63, a, b, c)
        import math, os.path as path
        from math import floor
        n64 = 0
        while n64 < 1:
            n64 += 1
            for _ in 'xy':
                b = box.x = b - 1
                say(70, a, b, c)
                d: int = max(*[2, 1], 1, *(2,))
                b = d
                say(71, a, b, c)
                b = work(len({v: crash(v, key=72) for v in (c, 5)}), key=2)
                c = b
            a += int(not len({v: crash(v, key=73) for v in (2, 5)}))
            (a, [b, *c]), box.x = ((a or c, [1, 2]), 3)
            c = len(c)
            say(74, a, b, c)
            for _ in 'xy':
                (a, [b, *c]), box.x = (({'k': [crash(v, key=78) for v in range(2)][-1], **{'l': 1}}['k'], [1, 2]), 1)
                c = len(c)
    except (KeyError, LookupError):
        if int(0 < c <= 0 + 2) != 1:
            say(79, 'stay')
        say(80)
    say(81, a, b, c, table, box.x, items)
    return a + c

def main():
    say(82, main_function(1, 2), g)
    return g
