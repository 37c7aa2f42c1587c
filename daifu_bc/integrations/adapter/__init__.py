"""debugpy's adapter, which asks who connects: `listen` starts it, `__main__.py` is what then runs beside the program."""

from __future__ import annotations

import os
from types import SimpleNamespace

from daifu_bc.errors import UsageError

#: As in `__main__.py`, which is run where this package may not be found.
TOKEN = "DAIFU_DEBUGPY_TOKEN"


def listen(host: str, port: int, token: str = "") -> tuple[str, int]:
    """Have debugpy listen for one client at a time, the same user's or one who knows the token.

    Args:
        host: the address to listen at.
        port: the port; 0 for a free one.
        token: what others than this user's own processes have to send; empty if they are not let in.

    Returns:
        Address and port where it listens.

    Raises:
        UsageError: debugpy is not installed, or is not the one that we know.
        RuntimeError: debugpy cannot listen there, or does so already.
    """
    try:
        import debugpy
        from debugpy.server import api
    except ImportError as error:
        raise UsageError("debugpy is not installed", why=str(error), remedy="pip install debugpy") from None
    known = getattr(api, "adapter", None)
    if known is None or not os.path.isfile(os.path.join(os.path.dirname(known.__file__), "__main__.py")):
        raise UsageError(
            f"debugpy {debugpy.__version__} is not known to daifu_bc", remedy="debugpy 1.8 is known to work."
        )
    environment = dict(api._config["pythonEnv"])
    debugpy.configure(pythonEnv=(environment or dict(os.environ)) | {TOKEN: token})
    # It runs the folder that this module lies in.
    api.adapter = SimpleNamespace(__file__=__file__)
    try:
        found: tuple[str, int] = debugpy.listen((host, port))
    finally:
        api.adapter = known
        debugpy.configure(pythonEnv=environment)
    return found
