# fmt: off
# mypy: ignore-errors
# oracle: surgery
# parameters: {"moved": false, "plan": {"keys": {"53": [2]}, "mode": "broken"}}
# What went wrong on CPython 3.14.8:
#   refused: surgery: NoPoint: line 5 of the new text is no place at which the run could go on. Keep the blocks around the crashed statement as they are.
#   events:
#     expected ['1', '2', '3', '52']
#     seen     []
#   result:
#     expected None
#     seen     
#   error:
#     expected 
#     seen     Fault('injected') while ExceptionGroup('g', [Expected(45)])
#   places:
#     expected []

try:
    raise ExceptionGroup('g', [Expected(45)])
except* Expected as error:
    n52 = 0
    while n52 < 3 and int(not [crash(v, key=53) for v in range(2)][-1]) is not None:
        n52 += 1
        say(n52)
say(52)
