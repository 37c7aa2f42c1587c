# fmt: off
# mypy: ignore-errors
# oracle: skip
# parameters: {"plan": {"keys": {"50": [1], "51": [1], "78": [1]}, "mode": "keyed"}}
# What went wrong on CPython 3.13.0:
#   refused: skip: NoPoint: there is no code behind this statement.

def main():
    try:
        raise Expected(45)
    except Expected as error:
        say(1)
        crash(key=78)
    say(2)
