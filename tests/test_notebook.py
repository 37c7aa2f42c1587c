"""`%load_ext daifu_bc` in a real kernel: what is held, asked and replaced there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kernels import ROOT, Kernel

DIVIDE = "def divide(x):\n    y = 10 // x\n    return y\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with the extension loaded, for several tests."""
    with loaded(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


@pytest.fixture
def kernel(running: Kernel) -> Kernel:
    """A kernel in which no test before has left a name."""
    assert running.run("%reset -f").error == ""
    return running


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel of the test's own."""
    with loaded(tmp_path) as kernel:
        yield kernel


@contextmanager
def loaded(folder: Path, **variables: str) -> Iterator[Kernel]:
    started = Kernel(folder, **variables)
    try:
        cell = started.run("%load_ext daifu_bc")
        assert (cell.text, cell.error) == ("", "")
        yield started
    finally:
        started.close()


def test_a_crash_asks_in_the_input_line_of_its_cell(fresh: Kernel) -> None:
    fresh.run(DIVIDE)
    cell = fresh.run(
        "total = 0\nfor i in [1, 0, 2]:\n    total += divide(i)\ntotal",
        "where",
        "x = 5",
        "print(x + 1)",
        "pass",
    )
    assert cell.prompts == ["daifu> "] * 4
    assert (cell.value, cell.error) == ("17", "")  # 10 + 2 + 5
    assert "\nZeroDivisionError: " in cell.text
    assert "> 2      y = 10 // x\n" in cell.text
    # Frames are named as the front end names cells, and those of IPython's do not show.
    assert "  0  <module>  In[3]:3\n> 1  divide    In[2]:2   <- held\n" in cell.text
    assert "interactiveshell" not in cell.text
    assert "\n6\n" in cell.text


def test_statements_of_a_cell_are_those_of_one_text(kernel: Kernel) -> None:
    cell = kernel.run("a = 1\nb = a // 0\nc = 3\nprint('c', c)\na", "goto 4", "skip")
    assert "name 'c' is not defined" in cell.text
    assert (cell.value, cell.error) == ("1", "")
    cell = kernel.run("a = 1\nb = a // 0\nc = 3\nprint('c', c)\na", "skip")
    assert (cell.value, cell.error) == ("1", "")
    assert cell.text.endswith("c 3\n")


def test_a_cell_that_awaits_goes_on_too(kernel: Kernel) -> None:
    kernel.run("import asyncio\nasync def late(x):\n    await asyncio.sleep(0)\n    return 10 // x")
    cell = kernel.run(
        "got = []\nfor i in [0, 5]:\n    got.append(await late(i))\nawait late(0)\ngot",
        "x = 1",
        "pass",
        "skip",
    )
    assert (cell.value, cell.error) == ("[10, 2]", "")
    cell = kernel.run("await asyncio.sleep(0)\nz = [1, 2][5]\nprint('after', z)", "z = 3", "skip")
    assert (cell.text[-8:], cell.error) == ("after 3\n", "")
    # A task is held where it crashed, and not where it is awaited.
    cell = kernel.run("await asyncio.gather(late(0), late(0), late(5))", "return 1", "x = 10", "pass")
    assert (cell.value, cell.error) == ("[1, 1, 2]", "")


@pytest.mark.parametrize(
    ("awaits", "shown"),
    [("asyncio.gather(divide(0), divide(2))", "[2, 5]"), ("asyncio.create_task(divide(0))", "2")],
    ids=["gather", "task"],
)
def test_tasks_that_a_cell_awaits_are_held(kernel: Kernel, awaits: str, shown: str) -> None:
    """What the kernel itself catches around the cell is no handler."""
    code = f"import asyncio\nasync def divide(x):\n    return 10 // x\nprint(await {awaits})"
    cell = kernel.run(code, "x = 5", "pass")
    assert (cell.error, cell.text.splitlines()[-1]) == ("", shown), cell.traceback
    handled = code.replace("print", "try: print") + "\nexcept ZeroDivisionError: print('caught')"
    cell = kernel.run(handled)
    assert (cell.error, cell.text, cell.prompts) == ("", "caught\n", [])


def test_magics_and_commands_go_on_working(kernel: Kernel) -> None:
    kernel.run(DIVIDE)
    cell = kernel.run(
        "%%time\nfirst = divide(0)\nsecond = divide(0)\nprint(first, second)", "x = 1", "pass", "return 7"
    )
    assert "\n10 7\n" in cell.text
    assert "Wall time" in cell.text
    assert kernel.run("!echo said $HOME").text == f"said {kernel.folder}\r\n"
    assert kernel.run("name = 'x'\n%env DAIFU_TEST=1\nname").value == "'x'"
    # Typed wrongly is no crash.
    wrong = kernel.run("%surgery nothing_of_that_name")
    assert (wrong.prompts, wrong.error) == ([], "")
    assert wrong.text.startswith("UsageError: daifu: nothing_of_that_name is no function")
    assert kernel.run("%timeit -n 1 -r 1 divide(1)").error == ""


def test_an_exception_that_goes_on_is_shown_as_ever(fresh: Kernel) -> None:
    fresh.run(DIVIDE)
    held = fresh.run("print('before')\ndivide(0)", "pass", "raise")
    assert held.error == "ZeroDivisionError"
    assert fresh.run("%unload_ext daifu_bc").error == ""
    plain = fresh.run("print('before')\ndivide(0)")
    assert (plain.prompts, plain.text) == ([], "before\n")
    assert held.traceback == plain.traceback.replace("In[5]", "In[3]")


def test_without_a_line_for_input_nobody_is_asked(kernel: Kernel) -> None:
    kernel.run(DIVIDE)
    cell = kernel.run("divide(0)", stdin=False)
    assert (cell.prompts, cell.error, cell.text) == ([], "ZeroDivisionError", "")
    assert kernel.run("divide(0)", "return 3").value == "3"


def test_modules_of_the_project_are_vaccinated(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(DIVIDE)
    (tmp_path / "late.py").write_text(DIVIDE)
    kernel = Kernel(tmp_path)
    try:
        kernel.run("import early\n" + DIVIDE)
        kernel.run("%load_ext daifu_bc")
        for call in ("early.divide(0)", "__import__('late').divide(0)", "divide(0)"):
            assert kernel.run(call, "x = 5", "pass").value == "2"
        kernel.run("%unload_ext daifu_bc")
        for call in ("early.divide(0)", "late.divide(0)", "divide(0)"):
            cell = kernel.run(f"import late\n{call}")
            assert (cell.prompts, cell.error) == ([], "ZeroDivisionError")
        kernel.run("%load_ext daifu_bc")
        assert kernel.run("early.divide(0)", "return 4").value == "4"
    finally:
        kernel.close()


def test_unloading_puts_the_shell_back(tmp_path: Path) -> None:
    look = (
        "import signal\nshell = get_ipython()\n"
        "(type(shell.compile).__name__, 'run_ast_nodes' in vars(shell), 'surgery' in shell.magics_manager.magics['line'],"
        " [len(found) for found in shell.events.callbacks.values()], signal.getsignal(signal.SIGINT))"
    )
    kernel = Kernel(tmp_path)
    try:
        before = kernel.run(look).value
        kernel.run("%load_ext daifu_bc")
        assert kernel.run(look).value != before
        kernel.run("%unload_ext daifu_bc")
        assert kernel.run(look).value == before
    finally:
        kernel.close()


def test_it_can_be_turned_off_and_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.daifu]\nretry-limit = 'many'\n")
    kernel = Kernel(tmp_path, DAIFU_DISABLE="1")
    try:
        assert kernel.run("%load_ext daifu_bc").error == "UsageError"
        (tmp_path / "pyproject.toml").write_text("")
        assert kernel.run("%load_ext daifu_bc").error == ""
        assert kernel.run("%daifu").text.startswith("Nothing is vaccinated")
        cell = kernel.run("1 // 0")
        assert (cell.prompts, cell.error) == ([], "ZeroDivisionError")
        assert kernel.run("%reload_ext daifu_bc").error == ""
        assert kernel.run("%daifu nothing").text.startswith("UsageError: daifu: `%daifu` knows no word")
    finally:
        kernel.close()


BUSY = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(600)"


def test_an_interrupt_stops_an_action_and_leaves_the_hold(kernel: Kernel) -> None:
    for first in ("", "import asyncio\nawait asyncio.sleep(0)\n"):  # they have handlers of their own for it
        cell = kernel.run(f"{first}x = 1 // 0\nprint('x', x)", BUSY, "x = 7", "skip")
        assert "KeyboardInterrupt" in cell.text
        assert "the hold stays" in cell.text
        assert (cell.text[-4:], cell.error) == ("x 7\n", "")


def test_two_interrupts_at_the_prompt_let_the_exception_go_on(fresh: Kernel) -> None:
    cell = fresh.run("1 // 0", fresh.interrupt, "1 + 1", fresh.interrupt, fresh.interrupt)
    assert cell.text.count("Interrupted; the run is still held.") == 2
    assert (len(cell.prompts), cell.error) == (4, "ZeroDivisionError")
    assert fresh.run("1 + 1").value == "2"


def test_an_interrupt_of_the_running_cell_is_not_held(kernel: Kernel) -> None:
    cell = kernel.run("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(600)")
    assert (cell.prompts, cell.error) == ([], "KeyboardInterrupt")


def test_a_definition_is_typed_line_by_line_or_pasted(kernel: Kernel) -> None:
    kernel.run(DIVIDE)
    kernel.run("callbacks = [divide]")
    cell = kernel.run(
        "callbacks[0](0)", "surgery divide <<END", "def divide(x):", "    return 'typed'", "END", "pass"
    )
    assert (cell.value, cell.error) == ("'typed'", "")
    assert cell.prompts == ["daifu> ", *["...    "] * 3, "daifu> "]
    kernel.run("def other(x):\n    return 10 // x")
    pasted = "surgery other <<END\ndef other(x):\n    return 'pasted'\nEND\npass"
    assert kernel.run("other(0)", pasted).value == "'pasted'"
    # The running cell is another text than that of the function, and goes on as it was.
    kernel.run(DIVIDE)
    cell = kernel.run(
        "done = []\nfor i in [1, 0]:\n    done.append(1 // i)\nprint(done, divide(0))",
        "surgery divide <<END\ndef divide(x):\n    return 'new'\nEND",
        "skip",
    )

    assert cell.text.endswith("[1] new\n")


def test_what_is_edited_and_saved_in_other_cells_is_taken(fresh: Kernel) -> None:
    """The kernel is busy: the cells can be edited and saved, but not run."""
    loop = "total = 0\nfor i in [0, 1]:\n    total += divide(i)\nprint('total', total)\ntotal"
    edited = DIVIDE.replace("// x", "// (x or 2)")

    def save() -> None:
        fresh.save(a=edited, b=loop.replace("'total'", "'sum'"))
        fresh.type("surgery")

    fresh.save(a=DIVIDE, b=loop)
    fresh.run(DIVIDE, cell_id="a")
    cell = fresh.run(loop, save, "pass", cell_id="b")
    assert "replaced divide (1 function)" in cell.text
    assert (cell.value, cell.error) == ("15", "")  # 10 // 2 + 10 // 1
    assert fresh.run("divide(0)").value == "5"
    assert fresh.run("%daifu undo").error == ""
    assert fresh.run("divide(0)", "return 1").value == "1"
    # Also while nothing is held, and from a front end that does not name its cells.
    assert "replaced divide (1 function)" in fresh.run("%surgery").text
    assert fresh.run("divide(0)").value == "5"


def test_cells_of_magics_and_cells_without_names_are_edited_too(fresh: Kernel) -> None:
    fresh.run("%%surgery\n" + DIVIDE, cell_id="s")
    fresh.run("def other(x):\n    return 10 // x\n")
    fresh.save(
        s="%%surgery\n" + DIVIDE.replace("// x", "// (x or 2)"),
        o="def other(x):\n    return 10 // (x or 5)\n",
        new="def unseen():\n    return 'this one has never run'\n",
    )
    assert fresh.run("divide(0), other(0)", "surgery", "pass").value == "(5, 2)"
    assert fresh.run("'unseen' in globals()").value == "False"


def test_a_cell_that_is_held_itself_goes_on_in_its_edited_text(kernel: Kernel) -> None:
    loop = "total = 0\nfor i in [0, 1]:\n    total += 10 // i\nprint('total', total)\ntotal + 1"
    edited = loop.replace("// i", "// (i or 2)").replace("print('total'", "print('sum'")

    def save() -> None:
        kernel.save(x="1 + 1", b=edited)
        kernel.type("surgery")

    cell = kernel.run(loop, save, "pass")
    assert cell.text.endswith("sum 15\n")
    assert (cell.value, cell.error) == ("16", "")


def test_an_older_text_in_the_file_is_not_taken(fresh: Kernel) -> None:
    fresh.save(a="def divide(x):\n    return 'old'")
    fresh.run(DIVIDE, cell_id="a")
    assert fresh.run("%surgery").text == "nothing has changed\n"
    cell = fresh.run("divide(0)", "surgery", "x = 1", "pass")
    assert "nothing has changed\n" in cell.text
    assert cell.value == "10"


def test_functions_that_are_defined_again_take_the_place_of_the_old_ones(kernel: Kernel) -> None:
    kernel.run(
        "import threading\n"
        "def work():\n    return 'old'\n"
        "class Model:\n    def step(self):\n        return 'old'\n    def other(self):\n        return 'other'\n"
        "def background(started, go, seen):\n"
        "    started.set()\n    while not go.wait(0.01):\n        seen.append('old')\n    return None\n"
        "def steps():\n    while True:\n        yield 'old'\n"
        "callbacks, model, generator = [work], Model(), steps()\nnext(generator)"
    )
    kernel.run(
        "def work():\n    return 'new'\n"
        "class Model:\n    def step(self):\n        return 'new'\n    def other(self):\n        return 'other'\n"
    )
    assert kernel.run("callbacks[0](), model.step()").value == "('old', 'old')"
    cell = kernel.run("%surgery work Model")
    assert cell.text == "replaced work (1 function)\nreplaced Model.step (1 function)\n"
    assert kernel.run("callbacks[0](), model.step(), model.other()").value == "('new', 'new', 'other')"
    cell = kernel.run("%%surgery\ndef work():\n    return 'newest'\n1 + 1")
    assert (cell.value, cell.text) == ("2", "replaced work (1 function)\n")
    assert kernel.run("callbacks[0](), work()").value == "('newest', 'newest')"
    assert "no older function is left" in kernel.run("%surgery work").text


def test_a_thread_in_the_background_goes_on_in_the_new_text(kernel: Kernel) -> None:
    kernel.run(
        "import threading\n"
        "def watch():\n    while not stop.is_set():\n        said.append('old')\n        turn.set()\n        stop.wait(0.001)\n"
        "said, stop, turn = [], threading.Event(), threading.Event()\n"
        "thread = threading.Thread(target=watch)\nthread.start()"
    )
    new = "def watch():\n    while not stop.is_set():\n        said.append('new')\n        turn.set()\n        stop.wait(0.001)\n"
    assert "1 function" in kernel.run("%%surgery\n" + new).text
    ended = "import time\nwhile 'new' not in said: time.sleep(0.001)\nstop.set()\nthread.join()\nsaid[-1]"
    assert kernel.run(ended).value == "'new'"


def test_another_cell_runs_in_a_subshell_while_one_is_held(fresh: Kernel) -> None:
    fresh.run(DIVIDE)
    subshell = fresh.subshell()
    answered = []

    def replace() -> None:
        new = "%%surgery\ndef divide(x):\n    return 'from the subshell'"
        answered.append(fresh.follow(fresh.send(new, subshell=subshell)))
        answered.append(fresh.follow(fresh.send("%daifu", subshell=subshell, stdin=False)))
        fresh.type("pass")

    cell = fresh.run("divide(0)", replace)
    assert answered[0].text.startswith("replaced divide (1 function)\n")
    assert "hold 1: thread MainThread, ZeroDivisionError" in answered[1].text
    assert (cell.value, cell.error) == ("'from the subshell'", "")


def test_a_thread_is_held_while_a_cell_runs(kernel: Kernel) -> None:
    kernel.run("import threading\n" + DIVIDE + "got = []\ndef work():\n    got.append(divide(0))")
    cell = kernel.run(
        "thread = threading.Thread(target=work, name='worker')\nthread.start()\nthread.join()\ngot",
        "x = 5",
        "pass",
    )
    assert "thread worker" in cell.text
    assert cell.value == "[2]"


def test_a_cell_does_not_end_before_a_thread_that_asks_in_it(kernel: Kernel) -> None:
    kernel.run("import threading\n" + DIVIDE + "got = []\ndef work():\n    got.append(divide(0))")
    cell = kernel.run(
        "import time\nfrom daifu_bc.recovery.turns import turns\n"
        "thread = threading.Thread(target=work)\nthread.start()\n"
        "while not turns.places():\n    time.sleep(0.001)\n"
        "print('started')",
        kernel.interrupt,
        "return 3",
        seen={"started": lambda: None},
    )
    assert "Interrupted; the run is still held." in cell.text
    assert cell.error == ""
    assert kernel.run("thread.join()\ngot").value == "[3]"


def test_a_thread_that_crashes_while_no_cell_runs_is_not_held(kernel: Kernel) -> None:
    go, done = kernel.folder / "go", kernel.folder / "done"
    os.mkfifo(go)
    os.mkfifo(done)
    kernel.run(
        "import threading\n"
        + DIVIDE
        + "def crashed(given):\n    open('done', 'w').write(given.exc_type.__name__)\n"
        "threading.excepthook = crashed\ndef work():\n    open('go').read()\n    divide(0)\n"
        "thread = threading.Thread(target=work)\nthread.start()"
    )
    go.write_text("now")
    assert done.read_text() == "ZeroDivisionError"
    assert kernel.run("thread.join()").prompts == []


def test_surgery_of_a_cell_that_awaits(kernel: Kernel) -> None:
    text = (
        "import asyncio\nasync def late(x):\n    await asyncio.sleep(0)\n    return 10 // x\n"
        "got = [await late(1)]\nfor i in [0, 5]:\n    got.append(await late(i))\nprint(got)\nNone"
    )
    cell = kernel.run(
        text,
        "surgery late <<END\nasync def late(x):\n    await asyncio.sleep(0)\n    return 10 // (x or 10)\nEND",
        "patch",
        "pass",
    )
    assert "# a/" not in cell.text
    assert "\n# -    return 10 // x\n# +    return 10 // (x or 10)\n" in cell.text
    assert (cell.text[-12:], cell.error) == ("\n[10, 1, 2]\n", "")
    # The statements of the cell itself are known, too.
    cell = kernel.run(text.replace("await late(i)", "10 // i"), "goto 8")
    assert (cell.text[-5:], cell.error) == ("[10]\n", "")


def test_a_running_cell_is_paused_from_a_subshell(kernel: Kernel) -> None:
    subshell = kernel.subshell()
    loop = "stop, rounds = False, 0\nprint('begun', flush=True)\nwhile not stop:\n    rounds += 1\nprint('stopped')"
    said = []

    def pause() -> None:
        said.append(kernel.send("%daifu pause", subshell=subshell))

    cell = kernel.run(loop, "stop = True", "pass", seen={"begun": pause})
    assert cell.text.endswith("stopped\n")
    assert kernel.run("%daifu pause").text.startswith("UsageError: daifu: this is the main thread")


def test_an_interrupt_is_held_if_asked_for(kernel: Kernel) -> None:
    kernel.run("import daifu_bc\ndaifu_bc.configure(hold_keyboard_interrupt=True)")
    loop = "stop = False\nprint('begun', flush=True)\nwhile not stop:\n    pass\nprint('stopped')"
    # It may have been interrupted in what prints.
    action = "get_ipython().user_ns['stop'] = True"
    cell = kernel.run(loop, action, "pass", seen={"begun": kernel.interrupt})
    kernel.run("daifu_bc.configure(hold_keyboard_interrupt=False)")
    assert "KeyboardInterrupt" in cell.text
    assert (cell.text[-8:], cell.error) == ("stopped\n", "")


def test_the_kernel_outlives_the_word_exit(kernel: Kernel) -> None:
    assert kernel.run("1 // 0", "exit").error == "SystemExit"
    assert kernel.run("1 + 1").value == "2"


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A runtime directory; the name of a socket has to be short."""
    with tempfile.TemporaryDirectory(prefix="nb") as folder:
        yield Path(folder)


def test_a_held_cell_is_reached_from_another_terminal(tmp_path: Path, runtime: Path) -> None:
    elsewhere = {"XDG_RUNTIME_DIR": str(runtime), "DAIFU_ATTACH": ""}

    def daifu(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "daifu_bc", *words],
            env={**os.environ, **elsewhere},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def act_and_answer() -> None:
        assert "ZeroDivisionError" in daifu("ps")
        assert daifu("do", started.process, "x = 5").startswith("Next: ")
        started.type("x + 1")  # the line for input is still there

    with loaded(tmp_path, **elsewhere) as started:
        started.run(DIVIDE)
        assert "running" in daifu("ps")
        cell = started.run("divide(0)", lambda: daifu("do", started.process, "x = 1", "pass"))
        assert (cell.value, cell.prompts) == ("10", ["daifu> "])
        assert "Decided from another terminal: " in cell.text
        cell = started.run("divide(0)", act_and_answer, "pass")
        assert (cell.value, cell.prompts) == ("2", ["daifu> "] * 2)
        assert "\n6\n" in cell.text
        assert "From another terminal: x = 5" in cell.text
        paused = started.run(
            "stop = False\nprint('begun', flush=True)\nwhile not stop:\n    pass",
            "stop = True",
            "pass",
            seen={"begun": lambda: daifu("pause", started.process)},
        )
        assert paused.error == ""


@pytest.mark.terminal
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_ipython_at_a_terminal_asks_there(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"}
    command = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"]
    child = pexpect.spawn(
        sys.executable, command, env=environment, cwd=str(tmp_path), timeout=30, encoding="utf-8"
    )
    try:
        for line in ("%load_ext daifu_bc", "def divide(x): return 10 // x\n", "divide(0)"):
            child.expect(r"In \[\d+\]: ")
            child.sendline(line)
        child.expect(r"> 0  <module>|  0  <module>  In\[3\]:1")
        child.expect("daifu> ")
        child.sendline("x = 5")
        child.expect("daifu> ")
        child.sendline("pass")
        child.expect(r"Out\[3\]: 2")
        child.expect(r"In \[4\]: ")
        child.sendline("%unload_ext daifu_bc")
        child.expect(r"In \[5\]: ")
        child.sendline("divide(0)")
        child.expect("ZeroDivisionError")
        child.expect(r"In \[6\]: ")
        child.sendline("exit")
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
