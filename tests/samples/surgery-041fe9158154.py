# fmt: off
# mypy: ignore-errors
# oracle: surgery
# parameters: {"moved": false, "plan": {"keys": {"53": [1]}, "mode": "broken"}}
# What went wrong on CPython 3.13.0:
#   events:
#     expected ['[1, 2]', '52']
#     seen     ['52']

try:
    raise Expected(45)
except Expected as error:
    say([crash(v, key=53) for v in (1,2)])
say(52)
