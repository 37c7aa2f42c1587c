"""`%load_ext daifu_bc`: what IPython calls."""

from __future__ import annotations

import threading
from types import FunctionType
from typing import Any, Final

from daifu_bc.analysis import filters
from daifu_bc.frontends import notebook
from daifu_bc.frontends.magics import Magics
from daifu_bc.install import importer, settings
from daifu_bc.install.scope import Scope
from daifu_bc.install.vaccinate import put_back, vaccinate_functions, vaccinate_loaded
from daifu_bc.install.vaccine import available, begin
from daifu_bc.install.walk import loaded_functions
from daifu_bc.integrations.ipython import Cells
from daifu_bc.integrations.notebook_file import NotebookFile
from daifu_bc.recovery import cells, policy
from daifu_bc.recovery.swap import live_functions

#: Stands for a file of the project: the working directory is where the notebook is.
_HERE: Final = "<notebook>"


class Extension:
    """What the extension has changed in a shell.

    Args:
        shell: IPython's.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.scope = Scope.of("project", _HERE)
        self.cells = Cells(shell)
        self.magics = Magics(shell, self.cells, self._state)
        self._vaccinates = False
        #: How many cells a thread runs, by its number: subshells are threads. The first is the one that loads this.
        self._running = {threading.get_ident(): 1}

    def begin(self) -> None:
        """Vaccinate the shell's cells and the modules of the project."""
        settings.read_project(_HERE)
        kernel = getattr(self.shell, "kernel", None)
        if kernel is not None:
            notebook.use(kernel)
            policy.set_responder_factory("notebook", notebook.responder)
            policy.set_notebook(self._takes_input)
        else:
            policy.set_terminal_free(lambda: bool(self._running))
        self.shell.events.register("pre_execute", self._cell_begins)
        self.shell.events.register("post_execute", self._cell_ends)
        self.magics.register()
        self._vaccinates = available()
        if not self._vaccinates:
            return
        begin()
        importer.install(self.scope)
        vaccinate_loaded(self.scope)
        vaccinate_functions(self._defined())
        cells.find_by(NotebookFile(self.shell, self.cells).edited)
        self.cells.begin()

    def end(self) -> None:
        """Put everything back."""
        self.magics.unregister()
        self.cells.end()
        cells.forget()
        self.shell.events.unregister("pre_execute", self._cell_begins)
        self.shell.events.unregister("post_execute", self._cell_ends)
        notebook.use(None)
        policy.set_notebook(None)
        policy.set_terminal_free(None)
        if self._vaccinates:
            importer.leave(self.scope)
            put_back([*self._defined(), *loaded_functions(self.scope)])

    def _defined(self) -> list[FunctionType]:
        """The functions that cells have defined."""
        return live_functions(self.shell.user_ns, lambda _: True)

    def _state(self) -> str:
        if not self._vaccinates:
            return "Nothing is vaccinated: daifu_bc is turned off, or does not know this Python."
        asked = "A crash is asked about in the cell." if policy.in_cell() else "Nobody is asked in a cell."
        return f"Cells are vaccinated, and the modules under {self.scope.root}. {asked}"

    def _takes_input(self) -> bool:
        return bool(self._running) and notebook.takes_input(self.shell.kernel)

    def _cell_begins(self) -> None:
        own = threading.get_ident()
        self._running[own] = self._running.get(own, 0) + 1
        policy.ask_anew()
        if filters.wants_keyboard_interrupt():
            from daifu_bc.install import ctrl_c  # it brings the engine along

            ctrl_c.take_over()  # the kernel puts the interpreter's handler in before each cell

    def _cell_ends(self) -> None:
        own = threading.get_ident()
        left = self._running.get(own, 1) - 1
        if left <= 0:
            # An input line without its cell is not shown; at a terminal the shell's own line would be in the way.
            notebook.wait_for_threads(self._running)
            self._running.pop(own, None)
            policy.ask_anew()
        else:
            self._running[own] = left


_loaded: Final[list[Extension]] = []


def load_ipython_extension(shell: Any) -> None:
    """Vaccinate a shell's cells: `%load_ext daifu_bc`."""
    if any(known.shell is shell for known in _loaded):
        return
    extension = Extension(shell)
    extension.begin()
    _loaded.append(extension)


def unload_ipython_extension(shell: Any) -> None:
    """Take that back: `%unload_ext daifu_bc`."""
    for extension in [known for known in _loaded if known.shell is shell]:
        _loaded.remove(extension)
        extension.end()
