"""The cells of IPython, in a notebook's kernel and at a terminal: their code is vaccinated as it is compiled.

IPython compiles each statement of a cell by itself. Here all that show nothing are compiled as one, so that a cell is
what a module is elsewhere: `goto` leads from one of its statements to another, and a surgery takes it as a whole.
"""

from __future__ import annotations

import ast
import inspect
import threading
import time
from types import CodeType
from typing import Any, Final, NamedTuple

from daifu_bc.analysis import editions
from daifu_bc.install.notice import report_failure
from daifu_bc.install.vaccine import vaccinated
from daifu_bc.recovery import cells
from daifu_bc.recovery.bodies import outermost
from daifu_bc.rewrite.barrier import pristine

#: What is put over methods of the shell, in its own attributes.
_METHOD: Final = "run_ast_nodes"
#: How the last statement of a cell is shown, where the others are not.
_SHOWN_APART: Final = ("last_expr", "none")


class Block(ast.If):
    """Statements of a cell that are compiled as one; the compiler gets them without what is around them.

    Attributes:
        code: what they have been compiled to.
        text: the cell up to their end.
    """

    code: CodeType | None = None
    text: str = ""


class Cells:
    """The vaccination of a shell's cells.

    Args:
        shell: IPython's `InteractiveShell`.

    Attributes:
        ran: what is known of the cells that have run since, by the names of their files.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.ran: dict[str, Ran] = {}
        self._plain_kind: Any = type(shell.compile)
        self._on = False
        # Which cell a thread runs: subshells are threads.
        self._present: dict[int, str] = {}

    def begin(self) -> None:
        """Vaccinate what is compiled from now on."""
        self._on = True
        outermost.add(_code_of(type(self.shell).run_code))
        self.shell.compile.__class__ = _vaccinating(self._plain_kind)
        self.shell.events.register("pre_run_cell", self._cell_begins)
        run = getattr(self.shell, _METHOD)

        async def run_ast_nodes(
            nodelist: list[ast.stmt],
            cell_name: str,
            interactivity: str = "last_expr",
            compiler: Any = compile,
            result: Any = None,
        ) -> Any:
            nodes = self._prepared(nodelist, cell_name, interactivity, compiler)
            return await run(nodes, cell_name, interactivity=interactivity, compiler=compiler, result=result)

        setattr(self.shell, _METHOD, run_ast_nodes)

    def end(self) -> None:
        """Compile plainly again."""
        if not self._on:
            return
        self._on = False
        vars(self.shell).pop(_METHOD, None)
        self.shell.events.unregister("pre_run_cell", self._cell_begins)
        self.shell.compile.__class__ = self._plain_kind
        outermost.discard(_code_of(type(self.shell).run_code))

    def _cell_begins(self, information: Any) -> None:
        self._present[threading.get_ident()] = getattr(information, "cell_id", None) or ""

    def present_id(self) -> str:
        """Return what the front end calls the cell that this thread runs; empty if it has not told."""
        return self._present.get(threading.get_ident(), "")

    def _prepared(
        self, nodes: list[ast.stmt], filename: str, interactivity: str, compiler: Any
    ) -> list[ast.stmt]:
        """The statements of a cell that is about to run, those that show nothing as one."""
        cell_id = self.present_id()
        if not isinstance(compiler, Vaccinating):  # code of IPython's own
            return nodes
        try:
            text = _parsed.text
            prepared = _in_blocks(nodes, filename, interactivity, compiler, self.shell.autoawait)
            if type(prepared[0]) is Block:
                text = prepared[0].text or text
            number = compiler.number_of(filename)
            cells.add(filename, f"In[{number}]")
            self.ran.pop(filename, None)  # so that those that ran last are the last
            self.ran[filename] = Ran(cell_id, filename, number, text, len(prepared) > 1, time.time())
        except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
            report_failure("prepare a cell", error)
            return nodes
        return prepared


class Ran(NamedTuple):
    """What is known of a cell that has run.

    Attributes:
        cell_id: what the front end calls it; empty if it does not tell.
        filename: the name of its file.
        number: of its execution.
        text: what ran, as Python; without the statement at its end whose value is shown.
        shows: whether there is such a statement.
        when: it began.
    """

    cell_id: str
    filename: str
    number: int
    text: str
    shows: bool
    when: float


def _code_of(function: Any) -> CodeType:
    code: CodeType = inspect.unwrap(function).__code__
    return code


class Vaccinating:
    """What a compiler of IPython's has in addition, that gives out vaccinated code."""

    _filename_map: dict[str, int]

    def number_of(self, filename: str) -> int:
        """Return the number of the cell's execution."""
        return self._filename_map.get(filename, 0)


class _Parsed(threading.local):
    """What this thread has parsed last; subshells share the compiler."""

    text = ""


_parsed: Final = _Parsed()


def _vaccinating(kind: Any) -> Any:
    """A kind of compiler that gives out vaccinated code; IPython, and magics like `%%time`, compile the user's with it."""

    def ast_parse(self: Any, source: str, *arguments: Any, **keywords: Any) -> Any:
        _parsed.text = source
        return kind.ast_parse(self, source, *arguments, **keywords)

    def compiled(self: Any, block: Block, filename: str) -> CodeType:
        """What the statements of a block compile to, plainly."""
        code: CodeType = kind.__call__(self, ast.Module(block.body, []), filename, "exec")
        return code

    def call(self: Any, source: Any, filename: str, *arguments: Any, **keywords: Any) -> Any:
        first = source.body[0] if type(source) is ast.Module and len(source.body) == 1 else None
        if type(first) is Block:
            return _vaccinated(first.code, first.text)
        code = kind.__call__(self, source, filename, *arguments, **keywords)
        # `%%time` and its like have no name of their own for each text.
        return _vaccinated(code, _parsed.text if filename.startswith("<timed") else "")

    methods = {"ast_parse": ast_parse, "compiled": compiled, "__call__": call}
    return type("VaccinatingCompiler", (Vaccinating, kind), methods)


def _vaccinated(code: Any, text: str) -> Any:
    if type(code) is not CodeType:
        return code
    built = vaccinated(code)
    if text and built is not code:
        _register(built, text)
    return built


def _register(code: CodeType, text: str) -> None:
    plain = pristine(code)
    editions.register_one(plain, text)
    for constant in plain.co_consts:
        if isinstance(constant, CodeType):
            _register(constant, text)


def _in_blocks(
    nodes: list[ast.stmt], filename: str, interactivity: str, compiler: Any, awaits: bool
) -> list[ast.stmt]:
    if interactivity not in _SHOWN_APART:
        return nodes
    shown = nodes[-1:] if interactivity == "last_expr" and isinstance(nodes[-1], ast.Expr) else []
    body = nodes[: len(nodes) - len(shown)]
    if not body:
        return nodes
    try:
        block = Block(ast.Constant(True), body, [])
        ast.copy_location(block, body[0])
        with compiler.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if awaits else 0):
            block.code = compiler.compiled(block, filename)
    # What cannot be compiled is to fail as ever: after the statements before it have run.
    except Exception:  # noqa: BLE001
        return nodes
    if shown:
        block.text = without_last(_parsed.text, shown[0])
    return [block, *shown]


def without_last(text: str, node: ast.stmt) -> str:
    """Return a text without the statement at its end.

    Args:
        text: it.
        node: the statement.
    """
    lines = text.split("\n")[: node.lineno]
    lines[-1] = lines[-1].encode()[: node.col_offset].decode()
    return "\n".join(lines)
