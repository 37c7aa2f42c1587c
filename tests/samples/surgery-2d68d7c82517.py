# fmt: off
# mypy: ignore-errors
# oracle: surgery
# parameters: {"moved": true, "plan": {"keys": {"23": [1]}, "mode": "broken"}}
# What went wrong on CPython 3.15.0:
#   events:
#     expected ['1']
#     seen     ['1', '1']

c = 1
box = Box
try:

    class Local7:
        expected(9)
except Expected:
    box.x = sum((crash(v, key=23) for v in (2,)))
finally:
    say(c)
