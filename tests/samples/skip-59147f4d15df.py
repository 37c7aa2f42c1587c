# fmt: off
# mypy: ignore-errors
# oracle: skip
# parameters: {"plan": {"keys": {"78": [2]}, "mode": "keyed"}}
# What went wrong on CPython 3.13.0:
#   refused: skip: NoPoint: there is no code behind this statement.

def main():
    try:
        for _ in "xy":
            w = [v for v in (1,)]
        for _ in "xy":
            x = [crash(v, key=78) for v in range(2)]
            say(2)
    except LookupError:
        pass
