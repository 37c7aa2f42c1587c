# fmt: off
# mypy: ignore-errors
# oracle: retry
# parameters: {"plan": {"limit": 1, "mode": "every", "period": 1}}
# What went wrong on CPython 3.13.0:
#   refused: pass: NoPoint: there is no point at which this statement could be repeated exactly. Use `goto`.
#   events:
#     expected ["'enter' 4", "'enter' 1", "'exit' 1 None", "'exit' 4 None"]
#     seen     ["'enter' 4", "'enter' 1", "'exit' 1 None"]
#   result:
#     expected 1
#     seen     
#   error:
#     expected 
#     seen     Fault('injected')
#   places:
#     expected []

def main():
    with Guard(4, 'exit', key=5) as m, Sound([v for v in range(2)][-1]):
        pass
    return 1
