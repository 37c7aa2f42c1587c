"""What is used of pydevd, each thing under a name that says what it is good for."""

from __future__ import annotations

import importlib
import inspect
import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

_BUNDLE: Final = "_pydevd_bundle.pydevd_"
_CONSTANTS: Final = _BUNDLE + "constants"
_COMMANDS: Final = _BUNDLE + "comm_constants"
_LIFECYCLE: Final = _BUNDLE + "thread_lifecycle"
_SCHEMA: Final = "_pydevd_bundle._debug_adapter.pydevd_base_schema"
_MONITORING: Final = "_pydevd_sys_monitoring.pydevd_sys_monitoring"
_TRACING: Final = "pydevd_tracing"
_MONKEY: Final = "_pydev_bundle.pydev_monkey"
_PROCESSOR: Final = _BUNDLE + "process_net_command_json"
_FACTORY: Final = _BUNDLE + "net_command_factory_json"
FRAMES: Final = _BUNDLE + "frame_utils"

#: Requests of the protocol that mean something else at a hold.
REQUESTS: Final = ("attach", "configurationdone", "continue", "disconnect", "evaluate", "goto", "gototargets")
#: Those that make a step, and pydevd's names for these.
STEPS: Final = {"next": "CMD_STEP_OVER", "stepin": "CMD_STEP_INTO", "stepout": "CMD_STEP_RETURN"}
#: How a thread stops: by an exception, at a line where it has been set to, for a pause.
EXCEPTION, JUMP, PAUSE = "CMD_ADD_EXCEPTION_BREAK", "CMD_SET_NEXT_STATEMENT", "CMD_RETURN"
#: The first step of a thread that goes on: to the next line of the user's, whatever it is.
INTO: Final = "CMD_STEP_INTO"
#: How pydevd calls itself as a tool of `sys.monitoring`.
TOOL: Final = "pydevd"

#: Modules, what is used of them, and the names of the parameters where they matter.
_USED: Final[dict[str, dict[str, str]]] = {
    "pydevd": {
        "PyDB.do_wait_suspend": "self thread frame event arg exception_type",
        "PyDB.do_stop_on_unhandled_exception": "self thread frame frames_byid arg",
        "PyDB._internal_get_file_type": "self abs_real_path_and_basename",
        "PyDB.post_method_as_internal_command": "self thread_id method args kwargs",
        "PyDB.find_frame": "self thread_id frame_id",
        "PyDB.get_internal_queue_and_event": "self thread_id",
        "PyDB.is_attached": "self",
        "PyDB.enable_tracing": "self thread_trace_func apply_to_all_threads",
        "PyDB.set_tracing_for_untraced_contexts": "",
        "PyDB.set_trace_for_frame_and_parents": "self thread_ident frame kwargs",
        "PyDB.threads_suspended_single_notification": "",
    },
    FRAMES: {
        "create_frames_list_from_frame": "frame",
        "create_frames_list_from_traceback": "trace_obj frame exc_type exc_desc exception_type",
    },
    _PROCESSOR: {
        f"PyDevJsonCommandProcessor.on_{name}_request": "self py_db request" for name in (*REQUESTS, *STEPS)
    },
    _FACTORY: {
        "NetCommandFactoryJson.make_thread_suspend_single_notification": (
            "self py_db thread_id thread stop_reason"
        ),
    },
    _BUNDLE + "comm": {"InternalThreadCommand": ""},
    _BUNDLE + "dont_trace_files": {"PYDEV_FILE": ""},
    _BUNDLE + "net_command": {"NetCommand.__init__": "self cmd_id seq text is_json"},
    _COMMANDS: dict.fromkeys((EXCEPTION, JUMP, PAUSE, *STEPS.values()), ""),
    _LIFECYCLE: {
        "mark_thread_suspended": "thread stop_reason original_step_cmd main_suspend",
        "internal_run_thread": "thread set_additional_thread_info",
        "resume_threads": "thread_id except_thread",
    },
    _BUNDLE + "additional_thread_info": {"set_additional_thread_info": ""},
    _CONSTANTS: {
        "get_current_thread_id": "thread",
        "get_global_debugger": "",
        "set_global_debugger": "dbg",
        "PYDEVD_USE_SYS_MONITORING": "",
        "STATE_RUN": "",
    },
    _SCHEMA: {"_requests_to_types": "", "BaseSchema": ""},
    _TRACING: {
        "SetTrace": "tracing_func",
        "set_trace_to_threads": "tracing_func thread_idents create_dummy_thread",
    },
    _MONKEY: {"patch_thread_modules": "", "undo_patch_thread_modules": ""},
    _MONITORING: dict.fromkeys(
        (
            "update_monitor_events",
            "restart_events",
            "start_monitoring",
            "stop_monitoring",
            "suspend_current_thread_tracing",
            "resume_current_thread_tracing",
            "reset_thread_local_info",
        ),
        "",
    ),
}


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def unknown() -> str:
    """Return what of the loaded pydevd is not as it is known; empty if all is."""
    for module, names in _USED.items():
        for name, parameters in names.items():
            try:
                found = _find(module, name)
                if parameters and " ".join(inspect.signature(found).parameters) != parameters:
                    return f"{module}.{name} takes other parameters"
            except (ImportError, AttributeError, TypeError, ValueError):
                return f"{module} has no {name}"
    return ""


# -- what it has ------------------------------------------------------------------------------------------------------


def database() -> Any:
    """The class of its debugger."""
    return _find("pydevd", "PyDB")


def processor() -> Any:
    """The class that answers requests of the protocol."""
    return _find(_PROCESSOR, "PyDevJsonCommandProcessor")


def factory() -> Any:
    """The class that makes events."""
    return _find(_FACTORY, "NetCommandFactoryJson")


def hidden_file() -> Any:
    """What it takes a file for whose frames are neither watched nor shown."""
    return _find(_BUNDLE + "dont_trace_files", "PYDEV_FILE")


def code(name: str) -> int:
    """The number of a command."""
    found: int = _find(_COMMANDS, name)
    return found


def add_request(name: str, handler: Any) -> None:
    """Answer a request that the protocol has not.

    Args:
        name: the request's.
        handler: called with the processor, the debugger and the request.
    """
    base = _find(_SCHEMA, "BaseSchema")

    class Request(base):  # type: ignore[misc,valid-type]
        """A request, with its arguments as they have come."""

        __slots__ = ("arguments", "command", "seq", "type")

        def __init__(self, command: str, seq: int, arguments: Any = None, **_: Any) -> None:
            self.type = "request"
            self.command, self.seq, self.arguments = command, seq, arguments or {}

        def to_dict(self, update_ids_to_dap: bool = False) -> dict[str, Any]:  # noqa: ARG002
            """Return the request as it has come."""
            return {"type": "request", "command": self.command, "seq": self.seq, "arguments": self.arguments}

    setattr(processor(), f"on_{name.lower()}_request", handler)
    _find(_SCHEMA, "_requests_to_types")[name] = Request


def instance() -> Any:
    """The debugger of this process; None if it has none."""
    return _find(_CONSTANTS, "get_global_debugger")()


def alive() -> bool:
    """Tell whether this process has a debugger that has not given up, as it does when its adapter has died."""
    found = instance()
    return found is not None and not found.pydb_disposed


def forget() -> None:
    """This process, a forked child, has no debugger: that of its parent has no threads here."""
    _find(_CONSTANTS, "set_global_debugger")(None)
    threading.current_thread().additional_info = None  # type: ignore[attr-defined]
    if uses_monitoring():
        _find(_MONITORING, "reset_thread_local_info")()


def send(content: dict[str, Any]) -> None:
    """Send a message to the client."""
    found = instance()
    if found is not None and found.writer is not None:
        found.writer.add_command(
            _find(_BUNDLE + "net_command", "NetCommand")(code(PAUSE), 0, content, is_json=True)
        )


def tell(event: str, body: dict[str, Any]) -> None:
    """Send an event to the client."""
    send({"type": "event", "event": event, "body": body})


# -- threads ----------------------------------------------------------------------------------------------------------


def thread_name() -> str:
    """Its name for this thread."""
    found: str = _find(_CONSTANTS, "get_current_thread_id")(threading.current_thread())
    return found


def information(thread: threading.Thread) -> Any:
    """What it keeps for a thread."""
    return _find(_BUNDLE + "additional_thread_info", "set_additional_thread_info")(thread)


def mark_stopped(how: str) -> None:
    """This thread is about to wait, and the client is to be told."""
    instance().threads_suspended_single_notification.increment_suspend_time()
    _find(_LIFECYCLE, "mark_thread_suspended")(threading.current_thread(), code(how))


def do_when_idle(thread: str, function: Callable[..., None]) -> None:
    """Have something done in a thread that waits, within the next moments, as soon as it has nothing else to do.

    Args:
        thread: its name for the thread.
        function: what is done.
    """
    queue, event = instance().get_internal_queue_and_event(thread)
    if not queue.empty():
        event.set()
    queue.put(_find(_BUNDLE + "comm", "InternalThreadCommand")(thread, function))


def release() -> None:
    """This thread, which waits, is to wait no longer."""
    information_of = _find(_BUNDLE + "additional_thread_info", "set_additional_thread_info")
    _find(_LIFECYCLE, "internal_run_thread")(threading.current_thread(), information_of)


def answer_rest(thread: str) -> None:
    """Answer what has been asked about a thread that does not wait any more.

    Nobody else would before its next stop, and the adapter passes nothing on until it has each answer.

    Args:
        thread: its name for it.
    """
    found = instance()
    if not alive():  # nobody hears it
        return
    asked, _ = found.get_internal_queue_and_event(thread)
    for _ in range(asked.qsize()):
        try:
            command = asked.get_nowait()
        except queue.Empty:
            return
        try:
            command.do_it(found)
        except Exception as error:  # noqa: BLE001 - as pydevd does it; the next one is not to suffer
            tell("output", {"category": "stderr", "output": f"{type(error).__name__}: {error}\n"})


def take_back_stop(thread: threading.Thread) -> None:
    """This thread, which was about to stop, does not, and those that were to stop with it do not either."""
    information(thread).pydev_state = _find(_CONSTANTS, "STATE_RUN")
    _find(_LIFECYCLE, "resume_threads")("*", except_thread=thread)


def begin_step(thread: threading.Thread, command: str, frame: FrameType | None) -> None:
    """Let this thread make a step as it goes on.

    Args:
        thread: it.
        command: the step's.
        frame: the frame that it is made in; None for a step into whatever comes.
    """
    found = information(thread)
    found.pydev_step_cmd = found.pydev_original_step_cmd = code(command)
    found.pydev_step_stop = frame
    found.pydev_state = _find(_CONSTANTS, "STATE_RUN")
    found.update_stepping_info()
    if uses_monitoring():
        _find(_MONITORING, "update_monitor_events")(suspend_requested=True)
        _find(_MONITORING, "restart_events")()


# -- watching ---------------------------------------------------------------------------------------------------------


def uses_monitoring() -> bool:
    """Tell whether it watches by `sys.monitoring`, and not by trace functions."""
    return bool(_find(_CONSTANTS, "PYDEVD_USE_SYS_MONITORING"))


def monitoring(name: str) -> Any:
    """One of its functions for that."""
    return _find(_MONITORING, name)


def set_trace(function: object) -> None:
    """Set the trace function of this thread."""
    _find(_TRACING, "SetTrace")(function)


def set_trace_of(threads: set[int], function: object) -> None:
    """Set the trace function of other threads."""
    _find(_TRACING, "set_trace_to_threads")(function, threads, create_dummy_thread=False)


def new_threads_watched(*, yes: bool) -> None:
    """Let it watch threads that are started from now on, or not."""
    _find(_MONKEY, "patch_thread_modules" if yes else "undo_patch_thread_modules")()
