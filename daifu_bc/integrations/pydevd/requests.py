"""The requests of a debugger's client, as far as they mean something else at a hold."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from daifu_bc.integrations.pydevd import known, watching
from daifu_bc.integrations.pydevd.stops import Answer, Stop, stops
from daifu_bc.recovery import debuggers

_Original = Callable[..., Any]
#: What is told where nothing is held.
_NOTHING: Final[dict[str, Any]] = {
    "held": False,
    "hold": None,
    "thread": "",
    "error": None,
    "next": None,
    "refused": "",
    "words": [],
}


def _respond(request: Any, answer: Answer) -> None:
    content = {
        "type": "response",
        "request_seq": request.seq,
        "command": request.command,
        "success": not answer.refused,
        "body": answer.body,
    }
    known.send(content | ({"message": answer.refused} if answer.refused else {}))


def _later(stop: Stop, request: Any, function: Callable[[], Answer | None]) -> None:
    """Have a request answered in the held thread.

    Args:
        stop: where.
        request: it.
        function: returns the answer, or None if it was given.
    """

    def do(_db: Any, *_: Any) -> None:
        if stops.get(stop.thread) is not stop:
            _respond(request, Answer(refused="the hold is over"))
            return
        try:
            answer = function()
        except Exception as error:  # noqa: BLE001 - rule 1: a fault of ours is told, and the hold stays
            answer = Answer(
                refused=f"daifu_bc failed inside ({type(error).__name__}: {error}); the hold stays"
            )
        if answer is not None:
            _respond(request, answer)
            if answer.over:
                known.release()

    known.instance().post_method_as_internal_command(stop.thread, do)


def _stop_of(frame: Any) -> Stop | None:
    """The stop whose stack a frame belongs to; without a frame, the only one."""
    if frame is None:
        return next(iter(stops.values()), None)
    return stops.get(known.instance().suspended_frames_manager.get_thread_id_for_variable_reference(frame))


def _guarded(handler: _Original) -> _Original:
    """A handler that answers a request which makes no sense by a failure; pydevd would close the connection."""

    @functools.wraps(handler)
    def guarded(*arguments: Any) -> Any:
        try:
            return handler(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever the client has sent
            request = arguments[-1]
            text = f"{request.command} cannot be done ({type(error).__name__}: {error})"
            _respond(request, Answer(refused=text))
            return None

    return guarded


def _evaluate(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    arguments = request.arguments
    ours = arguments.context in ("repl", "daifu") and isinstance(arguments.expression, str)
    stop = _stop_of(arguments.frameId) if ours else None
    if stop is None:
        return original(processor, db, request)

    def answer() -> Answer | None:
        frame = None if arguments.frameId is None else db.find_frame(stop.thread, arguments.frameId)
        found = stop.visit.evaluate(arguments.expression, frame, arguments.context)
        if found is None:
            command = original(processor, db, request)
            if command is not None:
                db.writer.add_command(command)
        return found

    _later(stop, request, answer)
    return None


def _continue(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    # The adapter does not say which thread is meant: all that have stopped go on.
    for stop in list(stops.values()):
        stop.wanted = "continue"
    return original(processor, db, request)


def _step(command: str, original: _Original, processor: Any, db: Any, request: Any) -> Any:
    stop = stops.get(request.arguments.threadId)
    if stop is None:
        return original(processor, db, request)

    def answer() -> Answer:
        stop.wanted = command
        return Answer(over=True)

    _later(stop, request, answer)
    return None


def _goto_targets(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    stop = _stop_of(None)
    if stop is None:
        return original(processor, db, request)
    path, line = processor.api.filename_to_server(request.arguments.source.path), request.arguments.line

    def answer() -> Answer | None:
        refused = stop.visit.reachable(path, line)
        if refused:
            return Answer(refused=refused)
        db.writer.add_command(original(processor, db, request))
        return None

    _later(stop, request, answer)
    return None


def _goto(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    stop = stops.get(request.arguments.threadId)
    try:
        _, line = processor._goto_targets_map.obtain_value(int(request.arguments.targetId))
    except KeyError:
        stop = None
    if stop is None:
        return original(processor, db, request)
    _later(stop, request, lambda: stop.visit.go_to(line))
    return None


def _attach(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    watching.wake()
    return original(processor, db, request)


def _configured(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    command = original(processor, db, request)
    debuggers.changed(attached=True)
    return command


def _disconnected(original: _Original, processor: Any, db: Any, request: Any) -> Any:
    command = original(processor, db, request)
    watching.rest()
    debuggers.changed(attached=False)
    return command


@_guarded
def status(_processor: Any, _db: Any, request: Any) -> None:
    """The request `daifuStatus`: what is held."""
    stop = _stop_of(None)
    _respond(request, Answer(_NOTHING if stop is None else stop.visit.status()))


@_guarded
def do(_processor: Any, db: Any, request: Any) -> None:
    """The request `daifuDo`: run words."""
    given = request.arguments if isinstance(request.arguments, dict) else {}
    number, words = given.get("frameId"), given.get("words")
    stop = _stop_of(number)
    if stop is None:
        _respond(request, Answer(refused="no hold waits here"))
        return
    if not isinstance(words, str):
        _respond(request, Answer(refused="`daifuDo` needs `words`, a text"))
        return

    def answer() -> Answer:
        frame = None if number is None else db.find_frame(stop.thread, number)
        found = stop.visit.evaluate(words, frame, "daifu")
        assert found is not None
        return Answer({"text": found.body["result"], **found.body["daifu"]}, over=found.over)

    _later(stop, request, answer)


_HANDLERS: Final[dict[str, Callable[..., Any]]] = {
    "attach": _attach,
    "configurationdone": _configured,
    "continue": _continue,
    "disconnect": _disconnected,
    "evaluate": _evaluate,
    "goto": _goto,
    "gototargets": _goto_targets,
    **{name: functools.partial(_step, command) for name, command in known.STEPS.items()},
}
#: What is put in the place of the handlers of pydevd, by the names of requests; each is given the original first.
HANDLERS: Final = {name: _guarded(handler) for name, handler in _HANDLERS.items()}
