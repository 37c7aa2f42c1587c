# fmt: off
# mypy: ignore-errors
# oracle: surgery
# parameters: {"moved": false, "plan": {"keys": {"53": [1]}, "mode": "broken"}}
# What went wrong on CPython 3.13.0:
#   events:
#     expected ['5', '52']
#     seen     ['52']

try:
    raise ExceptionGroup("g", [Expected(45)])
except* Expected as error:
    say(crash(5, key=53))
say(52)
