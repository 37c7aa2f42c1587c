# fmt: off
# mypy: ignore-errors
# oracle: skip
# parameters: {"plan": {"keys": {"15": [3], "18": [1], "24": [3], "42": [2], "48": [3], "78": [2]}, "mode": "keyed"}}
# What went wrong on CPython 3.13.0:
#   refused: skip: NoPoint: there is no code behind this statement.

def main_function(a, b):
    try:
        for _ in 'xy':
            b = {v: crash for v in (5,)}
        for _ in 'xy':
            box.x, = [crash(v, key=78) for v in range(2)]
    except LookupError:
        pass

def main():
    main_function(1, 2)
