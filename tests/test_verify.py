"""The verifier accepts what the compiler and the rewriter make, and refuses it with any fault in it."""

from __future__ import annotations

import ast
import dis
import random
import subprocess
import sys
import sysconfig
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

import pytest

from daifu_bc import pyversion
from daifu_bc.analysis.code import CACHES
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.regions import first_covered
from daifu_bc.errors import VerificationError
from daifu_bc.rewrite import barrier, continuation
from daifu_bc.rewrite.listing import Listing
from daifu_bc.rewrite.soundness import Walk
from daifu_bc.rewrite.verify import verify

STDLIB = Path(sysconfig.get_path("stdlib"))

#: Modules that between them have everything that the compiler makes.
SAMPLE = (
    "argparse", "asyncio/base_events", "asyncio/taskgroups", "contextlib", "dataclasses", "enum", "fractions",
    "inspect", "statistics", "tarfile", "test/test_coroutines", "test/test_except_star", "test/test_generators",
    "test/test_grammar", "test/test_patma", "typing",
)  # fmt: skip


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def compiled(path: Path) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def sample() -> list[Path]:
    return [path for name in SAMPLE if (path := STDLIB / f"{name}.py").exists()]


def function(source: str, name: str = "f") -> CodeType:
    """The code object of a function in `source`."""
    module = compile(textwrap.dedent(source), "<test>", "exec", dont_inherit=True)
    return next(code for code in nested(module) if code.co_name == name)


def built(code: CodeType) -> CodeType:
    return barrier.build(Flow(code))


# -- what it accepts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sample(), ids=lambda path: path.stem)
def test_accepts_what_the_compiler_makes(path: Path) -> None:
    for code in nested(compiled(path)):
        Walk(Listing(code, (0, len(code.co_code))))


@pytest.mark.parametrize("path", sample(), ids=lambda path: path.stem)
def test_accepts_what_is_vaccinated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []
    count = 0

    def remember(code: CodeType, error: Exception) -> None:
        if isinstance(error, VerificationError):
            refused.append(str(error))

    def count_up(code: CodeType, pristine: CodeType) -> None:
        nonlocal count
        count += 1
        verify(code, pristine)

    monkeypatch.setattr(barrier, "on_refusal", remember)
    monkeypatch.setattr(barrier, "from_verify", count_up)
    barrier.vaccinate_code(compiled(path))
    # A cell that does not live as long as its frame cannot be handed over.
    assert [text for text in refused if "may be unbound" not in text and "its cell" not in text] == []
    assert len(refused) <= 3
    assert count > 5


def test_accepts_continuations(monkeypatch: pytest.MonkeyPatch) -> None:
    """From everywhere, whichever locals are bound."""
    monkeypatch.setattr(continuation, "from_verify", verify)
    choose = random.Random(1)
    checked = 0
    for name in ("contextlib", "asyncio/taskgroups", "fractions"):
        for code in nested(compiled(STDLIB / f"{name}.py")):
            flow = Flow(code)
            points = [
                place
                for place in range(first_covered(flow), len(flow.stacks))
                if flow.is_restart_point(place)
            ]
            for place in choose.sample(points, min(3, len(points))):
                stack = flow.stacks[place]
                assert stack is not None
                for share in (0.0, 0.5, 1.0):
                    bound = frozenset(local for local in code.co_varnames if choose.random() < share)
                    for runs in (False, True):
                        continuation.build_continuation(
                            flow, continuation.Start(place, stack, bound), runs=runs
                        )
                    checked += 1
    assert checked > 500


WHOLE_LIBRARY = """
import sys, warnings
from pathlib import Path
from daifu_bc.errors import VerificationError
from daifu_bc.rewrite import barrier
warnings.simplefilter("ignore")
refused = []
barrier.on_refusal = lambda code, error: refused.append(error)
count = 0
for path in sorted(Path(sys.argv[1]).rglob("*.py"))[:: int(sys.argv[2])]:
    if "site-packages" in path.parts or not path.exists():
        continue
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        continue
    barrier.vaccinate_code(code)
    count += 1
refused = [str(error) for error in refused if isinstance(error, VerificationError)]
print(count, *(text for text in refused if "may be unbound" not in text and "its cell" not in text), sep="\\n")
"""


@pytest.mark.slow
def test_accepts_a_share_of_the_library() -> None:
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", WHOLE_LIBRARY, str(STDLIB), "15"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    count, *refused = run.stdout.splitlines()
    assert (run.stderr, run.returncode, refused) == ("", 0, [])
    assert int(count) > 50


# -- what it refuses: tools ------------------------------------------------------------------------------------

SOURCE = """
def f(a, b):
    for x in a:
        with b as c:
            c(x)
            try:
                c(1)
            finally:
                b(2)
    return [x, "text"]
"""
Entry = tuple[int, int, int, int, bool]


def entries_of(code: CodeType) -> list[Entry]:
    """The exception table: start, end, target, depth, lasti."""
    table: list[Entry] = []
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        table.append((entry.start, entry.end, entry.target, entry.depth, bool(entry.lasti)))
    return table


def with_entries(code: CodeType, entries: list[Entry]) -> CodeType:
    table = bytearray()
    for start, end, target, depth, lasti in entries:
        for index, value in enumerate((start // 2, (end - start) // 2, target // 2, depth << 1 | lasti)):
            groups = [value >> shift & 63 for shift in (24, 18, 12, 6, 0) if value >> shift or not shift]
            for position, group in enumerate(groups):
                more = 64 if position < len(groups) - 1 else 0
                table.append(group | more | (128 if index == position == 0 else 0))
    return code.replace(co_exceptiontable=bytes(table))


def cold(code: CodeType, size: int) -> list[dis.Instruction]:
    """The instructions from offset `size` on."""
    return [instruction for instruction in dis.get_instructions(code) if instruction.offset >= size]


def find(code: CodeType, size: int, *names: str) -> list[dis.Instruction]:
    """The first cold instructions with these names, in a row."""
    listed = cold(code, size)
    for at in range(len(listed)):
        if [instruction.opname for instruction in listed[at : at + len(names)]] == list(names):
            return listed[at : at + len(names)]
    raise AssertionError(f"no {names} in the cold code")


def argument(instruction: dis.Instruction) -> int:
    assert instruction.arg is not None
    return instruction.arg


def patched(code: CodeType, offset: int, name: str, arg: int) -> CodeType:
    """`code` with another instruction at `offset`; caches that are left over become NOPs."""
    raw = bytearray(code.co_code)
    number = dis.opmap[name]
    spare = CACHES[raw[offset]] - CACHES[number]
    assert spare in (0, CACHES[raw[offset]])
    raw[offset : offset + 2 + 2 * spare] = bytes((number, arg)) + bytes((dis.opmap["NOP"], 0)) * spare
    return code.replace(co_code=bytes(raw))


def refused(code: CodeType, pristine: CodeType, *reasons: str) -> None:
    """Sees that the verifier refuses `code` and says one of the reasons."""
    with pytest.raises(VerificationError) as caught:
        verify(code, pristine)
    text = str(caught.value)
    assert any(reason in text for reason in reasons), text
    assert caught.value.place.startswith("<test>, in ")
    assert caught.value.remedy


@pytest.fixture
def pristine() -> CodeType:
    return function(SOURCE)


@pytest.fixture
def code(pristine: CodeType) -> CodeType:
    vaccinated = built(pristine)
    verify(vaccinated, pristine)
    assert with_entries(vaccinated, entries_of(vaccinated)).co_exceptiontable == vaccinated.co_exceptiontable
    return vaccinated


def barriers(code: CodeType, size: int) -> list[int]:
    """Which entries of the exception table are barriers."""
    return [index for index, entry in enumerate(entries_of(code)) if entry[0] < size <= entry[2]]


# -- what it refuses: the exception table ----------------------------------------------------------------------


def changed_entry(code: CodeType, index: int, change: Callable[[Entry], Entry]) -> CodeType:
    table = entries_of(code)
    table[index] = change(table[index])
    return with_entries(code, table)


def test_a_barrier_that_is_too_deep(code: CodeType, pristine: CodeType) -> None:
    for index in barriers(code, len(pristine.co_code)):
        mutant = changed_entry(code, index, lambda entry: (*entry[:3], entry[3] + 1, entry[4]))
        refused(
            mutant,
            pristine,
            "handler wants",
            "of different depths",
            "it takes",
            "the stack grows",
            "its barrier stands for two",
        )


def test_a_barrier_that_is_too_shallow(code: CodeType, pristine: CodeType) -> None:
    for index in barriers(code, len(pristine.co_code)):
        if entries_of(code)[index][3]:
            mutant = changed_entry(code, index, lambda entry: (*entry[:3], entry[3] - 1, entry[4]))
            refused(
                mutant, pristine, "of different depths", "handler wants", "it takes", "the stack is too short"
            )


def test_all_barriers_of_a_stub_too_shallow(code: CodeType, pristine: CodeType) -> None:
    table = entries_of(code)
    size = len(pristine.co_code)
    for target in {entry[2] for entry in table if entry[0] < size <= entry[2] and entry[3]}:
        mutant = with_entries(
            code, [(*entry[:3], entry[3] - 1, entry[4]) if entry[2] == target else entry for entry in table]
        )
        refused(
            mutant, pristine, "handler wants", "it takes", "the stack is too short", "of different depths"
        )


def test_a_barrier_without_lasti(code: CodeType, pristine: CodeType) -> None:
    index = barriers(code, len(pristine.co_code))[0]
    mutant = changed_entry(code, index, lambda entry: (*entry[:4], False))
    refused(mutant, pristine, "its barrier has no lasti")


def test_a_barrier_that_leads_elsewhere(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    indices = barriers(code, size)
    call = find(code, size, "CALL")[0]
    mutant = changed_entry(code, indices[0], lambda entry: (*entry[:2], call.offset + 2, *entry[3:]))
    refused(mutant, pristine, "no instruction starts at its handler")
    mutant = changed_entry(code, indices[0], lambda entry: (*entry[:2], 0, *entry[3:]))
    refused(mutant, pristine, "neither its own nor a barrier")
    targets = {entries_of(code)[index][2] for index in indices}
    others = targets - {entries_of(code)[indices[0]][2]}
    for other in others:
        mutant = changed_entry(code, indices[0], lambda entry, to=other: (*entry[:2], to, *entry[3:]))  # type: ignore[misc]
        with pytest.raises(VerificationError):
            verify(mutant, pristine)


def test_a_barrier_over_half_an_instruction(code: CodeType, pristine: CodeType) -> None:
    call = next(instruction for instruction in dis.get_instructions(pristine) if instruction.opname == "CALL")
    table = entries_of(code)
    index = next(index for index, entry in enumerate(table) if entry[0] <= call.offset < entry[1])
    mutant = changed_entry(code, index, lambda entry: (entry[0], call.offset + 2, *entry[2:]))
    refused(mutant, pristine, "covers no whole instructions")


def test_a_lost_handler(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    covered = entries_of(pristine)
    for index in barriers(code, size):
        table = entries_of(code)
        start, end = table[index][:2]
        if any(entry[0] < end and start < entry[1] for entry in covered):
            del table[index]
            refused(with_entries(code, table), pristine, "it has lost its handler")
            break
    else:
        pytest.fail("there is no barrier over a handler")


def test_a_table_in_disorder(code: CodeType, pristine: CodeType) -> None:
    table = entries_of(code)
    refused(with_entries(code, [table[1], table[0], *table[2:]]), pristine, "out of order")
    first = (table[0][0], table[1][1], *table[0][2:])
    refused(with_entries(code, [first, *table[1:]]), pristine, "overlaps")
    refused(code.replace(co_exceptiontable=code.co_exceptiontable[:-1]), pristine, "cannot be read")
    refused(code.replace(co_exceptiontable=code.co_exceptiontable[1:]), pristine, "cannot be read")


def test_a_stub_that_re_raises_to_another_handler(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    reason = "it does not re-raise to the handler"
    displaced = [index for index, entry in enumerate(entries_of(code)) if entry[0] >= size > entry[2]]
    assert displaced
    for index in displaced:
        table = entries_of(code)
        del table[index]
        refused(with_entries(code, table), pristine, reason)
        mutant = changed_entry(code, index, lambda entry: (*entry[:4], not entry[4]))
        refused(mutant, pristine, reason)
        if entries_of(code)[index][3]:
            mutant = changed_entry(code, index, lambda entry: (*entry[:3], entry[3] - 1, entry[4]))
            refused(mutant, pristine, reason)


def test_a_stub_whose_call_is_covered_by_the_body(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    index = next(index for index, entry in enumerate(entries_of(code)) if entry[0] >= size > entry[2])
    before = max(i.offset for i in cold(code, size) if i.offset < entries_of(code)[index][0])
    mutant = changed_entry(code, index, lambda entry: (before, *entry[1:]))
    refused(mutant, pristine, "covered by a handler of the body")


# -- what it refuses: instructions -----------------------------------------------------------------------------


def test_a_changed_byte_of_the_body(code: CodeType, pristine: CodeType) -> None:
    for instruction in dis.get_instructions(pristine):
        if instruction.opname != "EXTENDED_ARG":
            raw = bytearray(code.co_code)
            raw[instruction.offset + 1] ^= 1
            refused(code.replace(co_code=bytes(raw)), pristine, "")


def test_a_missing_null(code: CodeType, pristine: CodeType) -> None:
    null = find(code, len(pristine.co_code), "PUSH_NULL")[0]
    refused(
        patched(code, null.offset, "NOP", 0),
        pristine,
        "the stack is too short",
        "of different depths",
        "wants",
    )


def test_a_null_that_is_used(code: CodeType, pristine: CodeType) -> None:
    """IMPORT_NAME, COPY and POP_TOP of a NULL; from 3.14 the last two look away."""
    size = len(pristine.co_code)
    load = find(code, size, "LOAD_CONST")[0]
    refused(patched(code, load.offset, "PUSH_NULL", 0), pristine, "that may hold NULL")
    popped = find(code, size, "POP_TOP", "SWAP")[0]
    mutant = patched(code, popped.offset, "LIST_APPEND", 1)
    refused(mutant, pristine, "it takes", "of different depths")


def test_swapped_instructions(code: CodeType, pristine: CodeType) -> None:
    swap, pop = find(code, len(pristine.co_code), "SWAP", "POP_EXCEPT")
    mutant = patched(patched(code, swap.offset, "POP_EXCEPT", 0), pop.offset, "SWAP", 2)
    refused(mutant, pristine, "it takes a saved exception")


def test_any_two_swapped_instructions(code: CodeType, pristine: CodeType) -> None:
    """Whatever neighbours change places in the cold code, it is found, but for pairs that do not care."""
    accepted = []
    raw = code.co_code
    simple = [
        instruction
        for instruction in cold(code, len(pristine.co_code))
        if dis.stack_effect(instruction.opcode, instruction.arg) is not None
        and raw[instruction.offset + 2 : instruction.offset + 3] != bytes(1)
    ]
    for one, two in zip(simple, simple[1:], strict=False):
        if (
            two.offset != one.offset + 2
            or raw[one.offset : one.offset + 2] == raw[two.offset : two.offset + 2]
        ):
            continue
        mutant = bytearray(raw)
        mutant[one.offset : one.offset + 4] = (
            raw[two.offset : two.offset + 2] + raw[one.offset : one.offset + 2]
        )
        try:
            verify(code.replace(co_code=bytes(mutant)), pristine)
        except VerificationError:
            continue
        accepted.append({one.opname, two.opname})
    # Two values that are loaded in the wrong order, or a jump to where the same follows.
    assert len(accepted) <= len(simple) / 4, accepted


def test_a_stack_that_is_too_small(code: CodeType, pristine: CodeType) -> None:
    refused(code.replace(co_stacksize=pristine.co_stacksize), pristine, "the stack grows over its size")
    refused(
        code.replace(co_stacksize=pristine.co_stacksize - 1), pristine, "the stack is smaller than it was"
    )


def test_a_constant_that_is_not_there(code: CodeType, pristine: CodeType) -> None:
    load = find(code, len(pristine.co_code), "LOAD_CONST")[0]
    refused(patched(code, load.offset, "LOAD_CONST", len(code.co_consts)), pristine, "beyond the constants")


def test_a_name_that_is_not_there(code: CodeType, pristine: CodeType) -> None:
    load = find(code, len(pristine.co_code), "IMPORT_FROM")[0]
    refused(patched(code, load.offset, "IMPORT_FROM", len(code.co_names)), pristine, "beyond the names")


def test_another_module_than_ours(code: CodeType, pristine: CodeType) -> None:
    """What a stranger returns is not taken for the list that it appends to."""
    names = tuple("another" if name == "daifu_bc" else name for name in code.co_names)
    refused(code.replace(co_names=names), pristine, "it takes a list")


def test_a_local_that_is_not_there(code: CodeType, pristine: CodeType) -> None:
    load = find(code, len(pristine.co_code), "LOAD_CONST")[0]
    refused(patched(code, load.offset, "LOAD_FAST", 99), pristine, "beyond the local variables")
    refused(patched(code, load.offset, "LOAD_DEREF", 0), pristine, "the variable is no cell")


@pytest.mark.skipif(not pyversion.UNCHECKED_LOADS, reason="each load is checked")
def test_an_unchecked_load(code: CodeType, pristine: CodeType) -> None:
    load = find(code, len(pristine.co_code), "LOAD_CONST")[0]
    slot = pristine.co_varnames.index("x")
    refused(patched(code, load.offset, "LOAD_FAST", slot), pristine, "it loads `x` unchecked")
    verify(patched(code, load.offset, "LOAD_FAST_CHECK", slot), pristine)
    verify(patched(code, load.offset, "LOAD_FAST", 0), pristine)  # a parameter


def test_a_depth_that_is_not_there(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    copy = find(code, size, "COPY")[0]
    refused(patched(code, copy.offset, "COPY", 60), pristine, "the stack is too short")
    refused(patched(code, copy.offset, "COPY", 0), pristine, "0 is no argument of COPY")
    append = find(code, size, "LIST_APPEND")[0]
    refused(
        patched(code, append.offset, "LIST_APPEND", argument(append) + 1),
        pristine,
        "it takes a list",
        "too short",
    )


def test_a_stub_that_cannot_re_raise(code: CodeType, pristine: CodeType) -> None:
    raising = find(code, len(pristine.co_code), "RERAISE")[0]
    refused(
        patched(code, raising.offset, "RERAISE", 0), pristine, "this barrier cannot re-raise", "covered by"
    )
    refused(patched(code, raising.offset, "RERAISE", 2), pristine, "saved lasti", "too short")


def test_what_leaves_a_continuation(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    entries = entries_of(code)
    behind = {entry[0]: entry for entry in entries_of(pristine)}
    standing = next(entry for entry in entries if entry[0] in behind and entry[2] >= size)
    (calling,) = [entry for entry in entries if entry[0] >= size and entry[2] >= size and entry[4]]
    mutant = [(*entry[:2], standing[2], *entry[3:]) if entry is calling else entry for entry in entries]
    refused(with_entries(code, mutant), pristine, "re-raised to a handler of the body")


def test_jumps(code: CodeType, pristine: CodeType) -> None:
    instructions = cold(code, len(pristine.co_code))
    jump = [found for found in instructions if found.opname == "JUMP_FORWARD" and argument(found) < 256][-1]
    refused(patched(code, jump.offset, "JUMP_FORWARD", 1), pristine, *JUMPS_WRONG)
    back = "JUMP_BACKWARD_NO_INTERRUPT"
    last = list(dis.get_instructions(pristine))[-1]
    into_body = (jump.offset + 2 - last.offset) // 2
    refused(patched(code, jump.offset, back, into_body), pristine, "jumps out of its part")
    calls = [found for found in instructions if found.opname == "CALL" and found.offset < jump.offset]
    onto_cache = (jump.offset - calls[-1].offset) // 2
    refused(patched(code, jump.offset, back, onto_cache), pristine, "where no instruction starts")


JUMPS_WRONG = (
    "no instruction starts",
    "of different depths",
    "it takes",
    "too short",
    "grows over",
    "may be unbound",
    "slots left",
    "certainly left",
)


def test_the_end(code: CodeType, pristine: CodeType) -> None:
    raw = code.co_code
    refused(
        code.replace(co_code=raw[:-2]),
        pristine,
        "runs off its end",
        "no whole instructions",
        "no instruction starts",
    )
    refused(
        code.replace(co_code=raw + bytes((dis.opmap["NOP"], 0))), pristine, "runs off its end", "line table"
    )
    refused(code.replace(co_code=raw + bytes((dis.EXTENDED_ARG, 0))), pristine, "ends in an EXTENDED_ARG")


def test_no_instruction(code: CodeType, pristine: CodeType) -> None:
    unknown = next(number for number in range(255, 0, -1) if dis.opname[number].startswith("<"))
    raw = bytearray(code.co_code)
    raw[len(pristine.co_code)] = unknown
    refused(code.replace(co_code=bytes(raw)), pristine, "an instruction is none")
    load = find(code, len(pristine.co_code), "LOAD_CONST")[0]
    refused(patched(code, load.offset, "RAISE_VARARGS", 3), pristine, "3 is no argument of RAISE_VARARGS")


def test_none_that_is_taken_for_the_list(code: CodeType, pristine: CodeType) -> None:
    """What `_intercept` answers is a list only where it has been asked whether it is None."""
    mutant = code
    for jump in cold(code, len(pristine.co_code)):
        if jump.opname.endswith("IF_NONE"):
            opposite = jump.opname.replace("IF_NONE", "IF_NOT_NONE")
            mutant = patched(mutant, jump.offset, opposite, argument(jump))
    refused(mutant, pristine, "it takes a list")


def test_what_is_no_exception(code: CodeType, pristine: CodeType) -> None:
    null = find(code, len(pristine.co_code), "PUSH_NULL")[0]
    for name in ("PUSH_EXC_INFO", "RERAISE"):
        refused(patched(code, null.offset, name, 0), pristine, "it takes an exception")


def test_what_trusts_its_inputs(code: CodeType, pristine: CodeType) -> None:
    swap = find(code, len(pristine.co_code), "SWAP")[0]
    refused(patched(code, swap.offset, "MAKE_FUNCTION", 0), pristine, "is not for use outside of the body")


@pytest.mark.skipif(not pyversion.HAS_PRECALL, reason="there is no PRECALL")
def test_a_call_of_another_number_of_arguments(code: CodeType, pristine: CodeType) -> None:
    before = find(code, len(pristine.co_code), "PRECALL")[0]
    refused(patched(code, before.offset, "PRECALL", 5), pristine, "no CALL of as many arguments follows it")


@pytest.mark.skipif("KW_NAMES" not in dis.opmap, reason="a call takes them from the stack")
def test_names_of_keyword_arguments(code: CodeType, pristine: CodeType) -> None:
    load = find(code, len(pristine.co_code), "LOAD_CONST")[0]
    refused(patched(code, load.offset, "KW_NAMES", 0), pristine, "no call with as many keyword arguments")


# -- what it refuses: everything else --------------------------------------------------------------------------


def test_missing_lines(code: CodeType, pristine: CodeType) -> None:
    """Entries without a place (15), for all of the cold code, or for its last instruction."""
    added = (len(code.co_code) - len(pristine.co_code)) // 2
    table = bytearray(pristine.co_linetable)
    while added:
        count = min(8, added)
        table.append(0x80 | 15 << 3 | count - 1)
        added -= count
    refused(code.replace(co_linetable=bytes(table)), pristine, "it has no line")
    refused(code.replace(co_linetable=pristine.co_linetable), pristine, "the line table covers")


def test_moved_lines(code: CodeType, pristine: CodeType) -> None:
    table = bytearray(code.co_linetable)
    at = next(index for index, byte in enumerate(table) if byte & 0x80 and byte >> 3 & 15 == 13)
    table[at + 1] ^= 2
    if at < len(pristine.co_linetable):
        refused(code.replace(co_linetable=bytes(table)), pristine, "positions have changed")
    refused(code.replace(co_linetable=code.co_linetable[:-1]), pristine, "the line table cannot be read")


def test_impossible_lines(code: CodeType, pristine: CodeType) -> None:
    """Each entry behind the body's, with a line far below the first one of any file."""
    table = code.co_linetable
    kept = len(pristine.co_linetable)
    heads = [index for index in range(kept, len(table)) if table[index] & 0x80]
    assert len(heads) > 3
    for head in heads:
        damaged = table[: head + 1] + bytes((0b1111111, 63)) + table[head + 2 :]
        refused(code.replace(co_linetable=damaged), pristine, "its line is -", "its line is below 0")


def test_lines_that_a_tree_has_brought_along() -> None:
    """Code that is made from a tree without places has line 0, and so may what is added to it."""
    tree = ast.parse("def f(x):\n    return g(x)")
    for node in ast.walk(tree):
        for name in ("lineno", "end_lineno"):
            if hasattr(node, name):
                setattr(node, name, 0)
    module = compile(tree, "<tree>", "exec")
    pristine = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
    vaccinated = built(pristine)
    assert 0 in {line for _, _, line in vaccinated.co_lines()}
    verify(vaccinated, pristine)


def test_moved_lines_of_a_continuation(monkeypatch: pytest.MonkeyPatch, pristine: CodeType) -> None:
    """Each entry of the body's, moved by a line."""
    code, shift = continued(monkeypatch, pristine, 3, EVERYTHING)
    table = code.co_linetable
    offset, moved = 0, 0
    for index in range(len(table)):
        if not table[index] & 0x80:
            continue
        kind = table[index] >> 3 & 15
        if shift <= offset < shift + len(pristine.co_code) and kind in (10, 11, 13, 14):
            damaged = bytearray(table)
            if kind in (13, 14):
                damaged[index + 1] ^= 2
            else:
                damaged[index] ^= 1 << 3  # from the same line to the next one, and back
            moved += 1
            refused(code.replace(co_linetable=bytes(damaged)), pristine, "positions have changed")
        offset += 2 * ((table[index] & 7) + 1)
    assert moved


def test_changed_constants(code: CodeType, pristine: CodeType) -> None:
    consts = code.co_consts
    for index in range(len(pristine.co_consts)):
        refused(
            code.replace(co_consts=(*consts[:index], "other", *consts[index + 1 :])),
            pristine,
            f"constant {index}",
        )
    index = consts.index(1) if 1 in pristine.co_consts else -1
    if index >= 0:
        refused(
            code.replace(co_consts=(*consts[:index], True, *consts[index + 1 :])),
            pristine,
            f"constant {index}",
        )
    refused(code.replace(co_consts=(*consts, pristine)), pristine, "is a code")


def test_changed_attributes(code: CodeType, pristine: CodeType) -> None:
    refused(
        code.replace(co_names=("other", *code.co_names[1:])), pristine, "co_names"
    ) if pristine.co_names else None
    refused(code.replace(co_flags=code.co_flags ^ 0x20), pristine, "co_flags has changed")
    refused(code.replace(co_firstlineno=99), pristine, "co_firstlineno has changed")
    refused(code.replace(co_argcount=1), pristine, "co_argcount has changed")
    refused(code.replace(co_varnames=("z", *code.co_varnames[1:])), pristine, "co_varnames has changed")


ZERO = "LOAD_SMALL_INT" if pyversion.SMALL_INTS else "LOAD_CONST"
LASTI_KEPT = ("SWAP", "POP_TOP", "POP_TOP")


@pytest.mark.skipif(not pyversion.BORROWED_LOADS, reason="each load takes a reference")
def test_a_local_that_is_let_go_while_it_is_borrowed(code: CodeType, pristine: CodeType) -> None:
    first, _, third = find(code, len(pristine.co_code), ZERO, "LOAD_CONST", "IMPORT_NAME")
    mutant = patched(code, first.offset, "LOAD_FAST_BORROW", 0)
    verify(mutant, pristine)
    refused(patched(mutant, third.offset, "STORE_FAST", 0), pristine, "borrowed from the local")


@pytest.mark.skipif(not pyversion.LASTI_IS_TAGGED, reason="lasti is an object")
def test_a_tagged_lasti_that_is_used(code: CodeType, pristine: CodeType) -> None:
    popped = find(code, len(pristine.co_code), *LASTI_KEPT)[1]
    refused(patched(code, popped.offset, "STORE_FAST", 0), pristine, "that may hold a saved lasti")
    load = find(code, len(pristine.co_code), "PUSH_EXC_INFO", ZERO)[1]
    mutant = patched(code, load.offset - 2, "STORE_FAST", 0)
    mutant = patched(mutant, load.offset, "STORE_FAST", 0)
    refused(mutant, pristine, "that may hold a saved lasti")


@pytest.mark.skipif(not pyversion.ITERATOR_IS_A_PAIR, reason="a loop has one slot")
def test_a_tagged_index_that_is_used(code: CodeType, pristine: CodeType) -> None:
    size = len(pristine.co_code)
    _, jump = find(code, size, "CONTAINS_OP", "POP_JUMP_IF_FALSE")
    for name in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE"):
        refused(
            patched(code, jump.offset, name, argument(jump)),
            pristine,
            "that may hold the tagged slot of a loop",
        )
    contains = jump.offset - 4
    refused(patched(code, contains, "CONTAINS_OP", 1), pristine, "that may hold the tagged slot of a loop")


# -- closures, generators --------------------------------------------------------------------------------------

CLOSURE = """
def outer(q):
    def f(a, b):
        def inner():
            return a, c, q
        c = b()
        return inner, q
"""
GENERATOR = """
def f(a):
    for x in a:
        yield x()
"""


def test_cells() -> None:
    pristine = function(CLOSURE)
    code = built(pristine)
    verify(code, pristine)
    load = find(code, len(pristine.co_code), "LOAD_FAST")[0]
    assert load.arg == 0  # the cell of `a`
    refused(patched(code, load.offset, "LOAD_DEREF", 1), pristine, "the variable is no cell")
    # A barrier over the instructions that make the cells.
    table = entries_of(code)
    size = len(pristine.co_code)
    first = next(entry for entry in table if entry[0] < size <= entry[2])
    table[table.index(first)] = (0, *first[1:])
    refused(with_entries(code, table), pristine, "may be unbound", "may not have its cell", "no RESUME")


def test_generators() -> None:
    pristine = function(GENERATOR)
    code = built(pristine)
    verify(code, pristine)
    size = len(pristine.co_code)
    resume = find(code, size, "YIELD_VALUE", "RESUME")[1]
    refused(patched(code, resume.offset, "NOP", 0), pristine, "no RESUME follows it")
    plain = function(SOURCE)
    load = find(built(plain), len(plain.co_code), "LOAD_CONST")[0]
    refused(patched(built(plain), load.offset, "YIELD_VALUE", 0), plain, "it is in no generator")


# -- continuations ---------------------------------------------------------------------------------------------


def continued(
    monkeypatch: pytest.MonkeyPatch, pristine: CodeType, line: int, bound: frozenset[str]
) -> tuple[CodeType, int]:
    """The continuation from the first restart point of a line, unverified, and the length of its prefix."""
    monkeypatch.setattr(continuation, "from_verify", lambda *_: None)
    flow = Flow(pristine)
    lines = {start: number for start, _, number in pristine.co_lines()}
    place = next(
        place
        for place, instruction in enumerate(flow.instructions)
        if lines.get(instruction.start) == pristine.co_firstlineno + line and flow.is_restart_point(place)
    )
    stack = flow.stacks[place]
    assert stack is not None
    code = continuation.build_continuation(flow, continuation.Start(place, stack, bound), runs=False).code
    raw = code.co_code
    return code, raw.find(pristine.co_code)


EVERYTHING = frozenset({"a", "b", "c", "x"})


def test_continuations(monkeypatch: pytest.MonkeyPatch, pristine: CodeType) -> None:
    code, shift = continued(monkeypatch, pristine, 3, EVERYTHING)
    verify(code, pristine)
    prefix = [instruction for instruction in dis.get_instructions(code) if instruction.offset < shift]
    # To another place than the one whose stack it has built: the beginning of the body, its second instruction.
    *_, jump = prefix
    assert jump.opname == "JUMP_FORWARD"
    for arg in (0, 1):
        refused(patched(code, jump.offset, "JUMP_FORWARD", arg), pristine, *JUMPS_WRONG)
    # A local that is not given back, an item that is not taken.
    store = next(instruction for instruction in prefix if instruction.opname == "STORE_FAST")
    refused(patched(code, store.offset, "NOP", 0), pristine, *JUMPS_WRONG)
    unpack = next(instruction for instruction in prefix if instruction.opname == "UNPACK_SEQUENCE")
    refused(patched(code, unpack.offset, "UNPACK_SEQUENCE", argument(unpack) + 1), pristine, *JUMPS_WRONG)
    resume = next(instruction for instruction in prefix if instruction.opname == "RESUME")
    refused(patched(code, resume.offset, "NOP", 0), pristine, "no RESUME before it")
    for instruction in dis.get_instructions(pristine):
        raw = bytearray(code.co_code)
        raw[shift + instruction.offset + 1] ^= 1
        refused(code.replace(co_code=bytes(raw)), pristine, "")


@pytest.mark.skipif(not pyversion.UNCHECKED_LOADS, reason="each load is checked")
def test_an_unchecked_load_of_a_continuation(monkeypatch: pytest.MonkeyPatch, pristine: CodeType) -> None:
    """`c` is unbound where the run goes on; the body loads it as the compiler left it."""
    code, _ = continued(monkeypatch, pristine, 3, EVERYTHING - {"c"})
    verify(code, pristine)
    monkeypatch.setattr(continuation, "checked_loads", lambda *_: {})
    code, _ = continued(monkeypatch, pristine, 3, EVERYTHING - {"c"})
    refused(code, pristine, "it loads `c` unchecked")


def test_cells_of_a_continuation(monkeypatch: pytest.MonkeyPatch) -> None:
    pristine = function(CLOSURE)
    code, shift = continued(monkeypatch, pristine, 3, frozenset({"a", "b", "c", "inner"}))
    verify(code, pristine)
    assert shift >= 0
    prefix = [instruction for instruction in dis.get_instructions(code) if instruction.offset < shift]
    first = prefix[0]
    assert first.opname == "COPY_FREE_VARS"
    refused(patched(code, first.offset, "NOP", 0), pristine, "may not have its cell", "may be unbound")
    refused(patched(code, first.offset, "COPY_FREE_VARS", 2), pristine, "there are 1 free variables")
    stores = [instruction for instruction in prefix if instruction.opname == "STORE_FAST"]
    cell = next(store for store in stores if store.arg == 0)
    refused(patched(code, cell.offset, "POP_TOP", 0), pristine, "may not have its cell", "may be unbound")


def test_a_generator_of_a_continuation(monkeypatch: pytest.MonkeyPatch) -> None:
    pristine = function(GENERATOR)
    code, shift = continued(monkeypatch, pristine, 2, frozenset({"a", "x"}))
    verify(code, pristine)
    made, popped = (
        next(i for i in dis.get_instructions(code) if i.opname == name)
        for name in ("RETURN_GENERATOR", "POP_TOP")
    )
    assert made.offset < popped.offset < shift
    mutant = patched(patched(code, made.offset, "NOP", 0), popped.offset, "NOP", 0)
    refused(mutant, pristine, "the generator may not have been made yet")
    mutant = patched(code, popped.offset, "RETURN_GENERATOR", 0)
    refused(mutant, pristine, "the generator may have been made already")


# -- robustness ------------------------------------------------------------------------------------------------


ORDINARY = {
    number
    for name, number in dis.opmap.items()
    if number < 256
    and not name.startswith("INSTRUMENTED_")
    and name not in ("ENTER_EXECUTOR", "RESERVED", "CACHE")
}


def can_be_made(raw: bytes) -> bool:
    """Whether the constructor of code objects survives it: it writes into caches, and looks up what is instrumented."""
    offset = 0
    while offset < len(raw):
        if raw[offset] not in ORDINARY:
            return False
        offset += 2 + 2 * CACHES[raw[offset]]
    return offset == len(raw)


@pytest.mark.parametrize("source", [SOURCE, CLOSURE, GENERATOR], ids=["plain", "closure", "generator"])
def test_any_damage_is_refused_in_words(source: str) -> None:
    """Whatever bytes have changed, it is either sound or refused; the verifier itself does not fail."""
    pristine = function(source)
    code = built(pristine)
    choose = random.Random(3)
    verdicts = {True: 0, False: 0}
    for _ in range(3000):
        field = choose.choice(["co_code", "co_code", "co_exceptiontable", "co_linetable"])
        data = bytearray(getattr(code, field))
        for _ in range(choose.choice([1, 1, 2, 4])):
            low = len(pristine.co_code) if field == "co_code" and choose.random() < 0.9 else 0
            data[choose.randrange(low, len(data))] = choose.choice(
                [choose.randrange(256), choose.randrange(8)]
            )
        if choose.random() < 0.1:
            del data[choose.randrange(len(data)) & ~1 :]
        if field == "co_code" and not can_be_made(bytes(data)):
            continue
        try:
            mutant = code.replace(**{field: bytes(data)})  # type: ignore[arg-type]
        except ValueError:
            continue
        try:
            verify(mutant, pristine)
        except VerificationError:
            verdicts[False] += 1
        else:
            verdicts[True] += 1
    assert verdicts[False] > 500
