# fmt: off
# mypy: ignore-errors
# oracle: statements
# parameters: {"word": "skip"}
# What went wrong on CPython 3.15.0:
#   refused: skip: NoPoint: there is no code behind this statement. Use `goto` or `return`.
#   error:
#     expected NameError("name 'Local16' is not defined")
#     seen     Fault('injected') while NameError("name 'Local16' is not defined")
#   places:
#     expected ['main:18', 'main_function:7']
#     seen     ['main:18', 'main_function:12']

def main_function(a, b):
    try:
        Local16
    finally:
        pass

def main():
    main_function(1, 2)
