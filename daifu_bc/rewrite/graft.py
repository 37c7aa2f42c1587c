"""Puts compiled text in the place of one statement of a body whose source is not to be had.

The body's bytes stay where they are. What the statement begins with becomes a jump to code behind the body, which does
what the new text says and jumps to where the run goes on behind the statement.
"""

from __future__ import annotations

import ast
import dis
import inspect
import opcode
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import (
    ExceptionEntry,
    Instruction,
    decode,
    encode_exception_entries,
    exception_entries,
    slot_names,
)
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.statements import FUTURES
from daifu_bc.errors import Refusal
from daifu_bc.rewrite.assemble import Assembler, Label, last_line
from daifu_bc.rewrite.splice import accesses, checked_loads, splice

#: What the new text returns at its end, so that this can be told from a `return` of its own.
_END: Final = "<end of the new statement>"
_OUTER: Final = ".around"
_CHECK: Final = "LOAD_FAST_CHECK" if pyversion.UNCHECKED_LOADS else "LOAD_FAST"
#: How many low bits of an argument do not belong to the name.
_SHIFTS: Final = {
    "LOAD_GLOBAL": 1,
    "LOAD_ATTR": int(pyversion.UNCHECKED_LOADS),
    "LOAD_SUPER_ATTR": 2,
    "IMPORT_NAME": 2 if pyversion.import_argument(1) > 1 else 0,
}
_FORWARD: Final = "JUMP_FORWARD"


class _Behind(int):
    """The offset of an instruction in the body before the assembled code."""


class _Graft(Assembler):
    def _argument(self, arg: int | Label, offsets: list[int], place: int) -> int:
        if isinstance(arg, _Behind):
            return (offsets[place + 1] - arg) // 2
        return super()._argument(arg, offsets, place)


def graft(flow: Flow, place: int, behind: int | None, text: str, line: int) -> CodeType:
    """A body with new text in the place of a statement; all other offsets stay.

    Args:
        flow: the body.
        place: where the statement begins.
        behind: where the run goes on behind it; None for the end of the function.
        text: the new text.
        line: the line of the statement.

    Raises:
        Refusal: the text cannot stand there.
    """
    code, base = flow.code, flow.stacks[place] or ()
    part = _compile(code, text, returns=not base and flow.entry(place) is None)
    asm = _Graft(code)
    asm.line(line)
    asm.deepest = len(base) + part.co_stacksize + 2
    _emit(asm, code, part, len(base), None if behind is None else flow.instructions[behind].start)
    around = flow.entry(place)
    if around is not None:
        begin = Label()
        begin.index = 0
        asm.protect(begin, asm.label(), around.target, around.depth, lasti=around.lasti)
    size = len(code.co_code)
    raw, table = asm.finish(size)
    lines, _ = asm.line_entries(last_line(code))
    jump = _jump(flow, place, size, behind)
    start = flow.instructions[place].start
    body = code.co_code[:start] + jump + code.co_code[start + len(jump) :]
    new_locals = part.co_varnames[len(code.co_varnames) :] if code.co_flags & inspect.CO_OPTIMIZED else ()
    return code.replace(
        co_code=body + raw,
        co_linetable=code.co_linetable + lines,
        co_exceptiontable=encode_exception_entries([*exception_entries(code.co_exceptiontable), *table]),
        co_consts=tuple(asm.consts),
        co_names=tuple(asm.names),
        co_varnames=code.co_varnames + new_locals,
        co_nlocals=code.co_nlocals + len(new_locals),
        co_stacksize=max(code.co_stacksize, asm.deepest),
    )


def with_checked_loads(flow: Flow, parameters: frozenset[str]) -> tuple[CodeType, dict[int, int]]:
    """A body that asks for each local that may be unbound; and for each offset that of the same instruction in it.

    Args:
        flow: the body, which may have lost assignments.
        parameters: what is bound when it begins.
    """
    code = flow.code
    unsafe = checked_loads(flow, 0, parameters) if pyversion.UNCHECKED_LOADS else {}
    starts = [instruction.start for instruction in flow.instructions]
    if not unsafe:
        return code, dict(zip(starts, starts, strict=True))
    spliced = splice(flow, unsafe)
    entries = [
        ExceptionEntry(
            spliced.new_offset(entry.start),
            spliced.new_offset(entry.end),
            spliced.new_offset(entry.target),
            entry.depth,
            entry.lasti,
        )
        for entry in flow.entries
    ]
    made = code.replace(
        co_code=spliced.raw, co_linetable=spliced.lines, co_exceptiontable=encode_exception_entries(entries)
    )
    return made, {start: spliced.new_offset(start) for start in starts}


def _jump(flow: Flow, place: int, target: int, behind: int | None) -> bytes:
    """The jump from a statement's beginning to the code behind the body, with what is left of the instruction that it cuts."""
    start = flow.instructions[place].start
    length = distance = extensions = 0
    for extensions in range(4):
        length = 2 + 2 * extensions
        distance = (target - start - length) // 2
        if distance < 1 << 8 * (1 + extensions):
            break
    room = start + length
    last = place
    while flow.instructions[last].end < room:
        last += 1
        if last >= len(flow.instructions) or last == behind or _leads_to(flow, last):
            raise Refusal(
                "the statement is too short to be replaced in the bytecode",
                remedy="Use `surgery NAME` with the whole function.",
            )
    raw = bytearray()
    for level in range(extensions, 0, -1):
        raw += bytes((opcode.EXTENDED_ARG, distance >> 8 * level & 255))
    raw += bytes((opcode.opmap[_FORWARD], distance & 255))
    # The rest of an instruction that is cut is never reached, but must be one.
    raw += bytes((opcode.opmap["NOP"], 0)) * ((flow.instructions[last].end - room) // 2)
    return bytes(raw)


def _leads_to(flow: Flow, place: int) -> bool:
    """Whether something else than the instruction before leads to one."""
    start = flow.instructions[place].start
    return any(instruction.target == start for instruction in flow.instructions) or any(
        entry.target == start for entry in flow.entries
    )


def _compile(code: CodeType, text: str, *, returns: bool) -> CodeType:
    """The code of new text that sees the names of a body as that does.

    Raises:
        Refusal: it cannot stand there.
    """
    optimized = bool(code.co_flags & inspect.CO_OPTIMIZED)
    remedy = "Give the whole function by `surgery NAME`."
    try:
        tree = ast.parse(text)
        for node in _own(tree):
            if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith):
                raise Refusal("without source new text cannot have `yield` or `await`", remedy=remedy)
            if isinstance(node, ast.Return) and (not returns or not optimized):
                raise Refusal(
                    "without source a `return` cannot leave the blocks around it",
                    remedy="Use the word `return`, or give the whole function by `surgery NAME`.",
                )
        module = _in_function(code, tree) if optimized else tree
        built: CodeType = compile(
            ast.fix_missing_locations(module),
            code.co_filename,
            "exec",
            code.co_flags & FUTURES,
            dont_inherit=True,
        )
    except SyntaxError as error:
        raise Refusal(
            "the new text cannot be compiled",
            why=str(error.msg),
            remedy="`break` and `continue` of a loop around it need source; the words `skip body` and `skip loop` do them.",
        ) from None
    if not optimized:
        if slot_names(code):
            raise Refusal(
                "a class body with variables of functions cannot be replaced in part", remedy=remedy
            )
        return built
    for _ in range(2):
        built = next(constant for constant in built.co_consts if isinstance(constant, CodeType))
    if built.co_cellvars:
        names = ", ".join(built.co_cellvars)
        raise Refusal(
            f"a function in the new text uses {names}, which would have to be a cell", remedy=remedy
        )
    fresh = built.co_varnames[len(code.co_varnames) :]
    if fresh and len(slot_names(code)) > len(code.co_varnames):
        raise Refusal(
            f"{', '.join(fresh)} would be a new local, and there are cells behind the locals",
            remedy="Use a name that the function has, or give the whole function by `surgery NAME`.",
        )
    return built


def _own(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree that belong to no function or class in it."""
    found, work = [], [tree]
    while work:
        node = work.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            work += ast.iter_child_nodes(node)
    return found


def _in_function(code: CodeType, tree: ast.Module) -> ast.Module:
    """The text in a function that has the body's locals as parameters, in one that has its cells."""
    cells = {*code.co_cellvars, *code.co_freevars}
    names = [f".{name}" if name in cells else name for name in code.co_varnames]
    made = ast.parse("def around():\n    def inner(): pass")
    outer = made.body[0]
    assert isinstance(outer, ast.FunctionDef)
    inner = outer.body[0]
    assert isinstance(inner, ast.FunctionDef)
    inner.name = code.co_name if code.co_name.isidentifier() else "inner"
    inner.args.args = [ast.arg(name) for name in names]
    declared: list[ast.stmt] = []
    stored = _stored_globals(code)
    if stored:
        declared.append(ast.Global(sorted(stored)))
    if cells:
        declared.append(ast.Nonlocal(sorted(cells)))
        outer.body = [
            *(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in sorted(cells)),
            inner,
        ]
    inner.body = [*declared, *tree.body, ast.Return(ast.Constant(_END))]
    return made


def _stored_globals(code: CodeType) -> set[str]:
    return {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
    }


def _emit(asm: _Graft, code: CodeType, part: CodeType, depth: int, behind: int | None) -> None:
    """Assembles the new text's instructions for another body.

    Args:
        asm: where they go.
        code: that body.
        part: the code of the new text.
        depth: how many items lie below on the stack.
        behind: offset of where the run goes on; None for the end of the function.
    """
    instructions = decode(part)
    first = next(at for at, one in enumerate(instructions) if one.name == "RESUME") + 1
    labels = {instruction.start: Label() for instruction in instructions}
    end = Label()
    at = first
    while at < len(instructions):
        instruction = instructions[at]
        asm.place(labels[instruction.start])
        length = _ends(part, instructions, at)
        if length:
            for other in instructions[at + 1 : at + length]:
                asm.place(labels[other.start])
            _go_on(asm, behind)
            at += length
            continue
        _emit_one(asm, code, part, instruction, labels)
        at += 1
    asm.place(end)
    for entry in exception_entries(part.co_exceptiontable):
        if entry.end <= instructions[first].start:
            continue
        begin = (
            labels[entry.start]
            if entry.start >= instructions[first].start
            else labels[instructions[first].start]
        )
        asm.protect(
            begin, labels.get(entry.end, end), labels[entry.target], entry.depth + depth, lasti=entry.lasti
        )


def _ends(part: CodeType, instructions: list[Instruction], at: int) -> int:
    """How many instructions, from this one on, are the end of the new text; 0 if it is not there."""
    instruction = instructions[at]
    optimized = bool(part.co_flags & inspect.CO_OPTIMIZED)
    following = instructions[at + 1].name if at + 1 < len(instructions) else ""
    if instruction.name == "RETURN_CONST":
        return int(not optimized or part.co_consts[instruction.arg] == _END)
    if instruction.name == "LOAD_CONST" and following == "RETURN_VALUE":
        return 2 if not optimized or part.co_consts[instruction.arg] == _END else 0
    return 2 if not optimized and following == "RETURN_VALUE" else 0


def _go_on(asm: _Graft, behind: int | None) -> None:
    if behind is None:
        asm.constant(None)
        asm.emit("RETURN_VALUE")
    else:
        asm.emit("JUMP_BACKWARD", _Behind(behind))


def _emit_one(
    asm: _Graft, code: CodeType, part: CodeType, instruction: Instruction, labels: dict[int, Label]
) -> None:
    number, name, arg = instruction.opcode, instruction.name, instruction.arg
    slots = accesses(number, arg)
    if slots:
        for loads, slot in slots:
            if slot >= part.co_nlocals:  # a cell, for a function in the new text
                asm.emit("LOAD_FAST", _slot(code, part, slot))
            else:  # the compiler takes it for bound
                asm.emit(_CHECK if loads else "STORE_FAST", slot)
    elif number in opcode.hasfree:
        asm.emit(name, _slot(code, part, arg))
    elif number in opcode.hasconst:
        asm.emit(name, asm.constant_index(part.co_consts[arg]))
    elif number in opcode.hasname:
        shift = _SHIFTS.get(name, 0)
        asm.emit(name, asm.name_index(part.co_names[arg >> shift]) << shift | arg & (1 << shift) - 1)
    elif instruction.target is not None:
        asm.emit(name, labels[instruction.target])
    else:
        asm.emit(name, arg)


def _slot(code: CodeType, part: CodeType, slot: int) -> int:
    """The slot of a cell, by its slot in the code of the new text."""
    return slot_names(code).index(slot_names(part)[slot])
