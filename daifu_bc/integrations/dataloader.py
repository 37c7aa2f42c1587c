"""The handler by which a DataLoader tells that a worker has died is vaccinated, though torch is not.

It raises at whatever instruction the main process happens to be. Held in the handler, which can still return, the
run goes on behind that instruction; held in the interrupted frame, it could only be guessed how far that had come.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

from daifu_bc.install.vaccinate import vaccinate_functions

_SETTER = "_set_SIGCHLD_handler"


def install(module: ModuleType) -> None:
    """Vaccinate what makes the handler, and the handler with it; another torch may have no such function.

    Args:
        module: `torch.utils.data._utils.signal_handling`, as soon as it is imported.
    """
    setter = vars(module).get(_SETTER)
    if type(setter) is FunctionType:
        vaccinate_functions([setter])
