"""What goes over the socket of a held run: JSON-RPC 2.0, one object a line."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

#: Bytes that a line to the run may have. What comes back may be longer: an action may print much.
MOST_BYTES: Final = 1 << 20

# The first five are JSON-RPC's own.
NO_JSON: Final = -32700
NO_REQUEST: Final = -32600
NO_METHOD: Final = -32601
WRONG_PARAMETERS: Final = -32602
FAILED_INSIDE: Final = -32603
#: Another client acts.
TAKEN: Final = -32000
#: Another hold is asked about now.
OTHER_HOLD: Final = -32001

Object = dict[str, Any]


class FaultyLineError(Exception):
    """A line that cannot be answered.

    Args:
        code: the error's number.
        text: what is wrong.
        number: the request's `id`, as far as it is known.
    """

    def __init__(self, code: int, text: str, number: object = None) -> None:
        self.code = code
        self.number = number
        super().__init__(text)


class Call(NamedTuple):
    """A request.

    Attributes:
        number: its `id`.
        method: what is asked for.
        parameters: by their names.
    """

    number: int | str
    method: str
    parameters: Object


def line(content: Object) -> bytes:
    """Return an object as a line; what is no valid text in it is kept by escapes."""
    return json.dumps({"jsonrpc": "2.0", **content}, ensure_ascii=True).encode("ascii") + b"\n"


def request(number: int, method: str, parameters: Object) -> bytes:
    """Return the line that asks for something."""
    return line({"id": number, "method": method, "params": parameters})


def reply(number: object, result: Object) -> bytes:
    """Return the line that answers a request."""
    return line({"id": number, "result": result})


def failure(number: object, code: int, text: str) -> bytes:
    """Return the line that says why a request is not answered."""
    return line({"id": number, "error": {"code": code, "message": text}})


def notice(method: str, parameters: Object) -> bytes:
    """Return the line that tells something for which nobody has asked."""
    return line({"method": method, "params": parameters})


def parse_object(text: bytes) -> Object:
    """Return the object that a line is.

    Raises:
        FaultyLineError: it is none.
    """
    try:
        content = json.loads(text)
    # Not UTF-8, no JSON, a number of too many digits, brackets without end.
    except (ValueError, RecursionError) as error:
        raise FaultyLineError(NO_JSON, f"this is no JSON ({type(error).__name__})") from None
    if not isinstance(content, dict) or content.get("jsonrpc") != "2.0":
        raise FaultyLineError(NO_REQUEST, 'this is no object with "jsonrpc": "2.0"')
    return content


def parse_call(text: bytes) -> Call:
    """Return the request that a line is.

    Raises:
        FaultyLineError: it is none.
    """
    content = parse_object(text)
    number = content.get("id")
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        raise FaultyLineError(NO_REQUEST, "a request has an `id`, a whole number or a text")
    method, parameters = content.get("method"), content.get("params", {})
    if not isinstance(method, str):
        raise FaultyLineError(NO_REQUEST, "a request has a `method`, a text", number)
    if not isinstance(parameters, dict):
        raise FaultyLineError(WRONG_PARAMETERS, "`params` is an object", number)
    return Call(number, method, parameters)
