"""Makes a program run whose names mean nothing, statement by statement, whatever each of them raises."""

from __future__ import annotations

import ast
import builtins

_WRAPPER = "try:\n    pass\nexcept Exception as _error:\n    say(_error)"


def opened(source: str) -> str:
    """The program with its unknown names bound to things that allow everything, and its functions called.

    Raises:
        SyntaxError, ValueError, RecursionError: it is no program, or cannot be written out again.
    """
    tree = ast.parse(source)
    names = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not hasattr(builtins, node.id)
    }
    lines = [
        "from fuzz.anything import Anything as _Anything, exercise as _exercise, start as _start",
        "_start(say)",
        *(f"{name} = _Anything({name!r})" for name in sorted(names)),
    ]
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        wrapper = ast.parse(_WRAPPER).body[0]
        assert isinstance(wrapper, ast.Try)
        wrapper.body = [statement]
        body.append(wrapper)
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    end = ["def main():", "    _exercise(globals())"]
    source = "\n".join([*lines, text, *end]) + "\n"
    compile(source, "program", "exec", dont_inherit=True)
    return source
