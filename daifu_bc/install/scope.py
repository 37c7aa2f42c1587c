"""Which code is vaccinated: one function, a project, named packages, or everything but daifu_bc itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from daifu_bc.errors import UsageError

#: What a user may write: ``"function"``, ``"project"``, ``"all"``, or names of packages and modules.
ScopeArgument = str | Iterable[str]

#: A folder that holds one of these is the root of a project.
ROOT_MARKERS = ("pyproject.toml", "setup.py", ".git")

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STANDARD_LIBRARY = {
    folder
    for path in (os.__file__,)
    for folder in (os.path.dirname(path), os.path.dirname(os.path.realpath(path)))
}
_PROGRAMS = {
    os.path.dirname(sys.executable),
    os.path.join(sys.prefix, "bin"),
    os.path.join(sys.prefix, "Scripts"),
}
# A program that is run is always meant; the second is its name in processes started by multiprocessing.
_PROGRAM_NAMES = ("__main__", "__mp_main__")
_LIBRARY_FOLDERS = ("site-packages", "dist-packages")

# Never vaccinated, whatever the scope: what our own runtime stands on while a program is held or imported.
_OWN_PACKAGES = ("daifu_bc", "bytecode", "importlib", "runpy")


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _inside(packages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{package}." for package in packages)


_INSIDE_OWN = _inside(_OWN_PACKAGES)


def is_library(path: str) -> bool:
    """Tell whether a file belongs to the standard library, to an installed package or to daifu_bc.

    Args:
        path: an absolute path.
    """
    parts = path.split(os.sep)
    return (
        any(folder in parts for folder in _LIBRARY_FOLDERS)
        or any(_lies_in(path, folder) for folder in _STANDARD_LIBRARY)
        or _lies_in(path, _OWN_FOLDER)
    )


def _is_installed(path: str) -> bool:
    """Tell whether a program was installed and is thus no part of the project that it is used in."""
    return is_library(path) or os.path.dirname(path) in _PROGRAMS


def project_root(filename: str) -> str:
    """Return the root of the project that a file belongs to.

    It is the nearest folder above the file that holds one of `ROOT_MARKERS`; without one, the folder that the
    file, or the outermost package around it, lies in. For what is no file (code typed in) or was installed
    (a launcher that runs the user's program), the working directory stands for the file's folder.

    Args:
        filename: the file, as in a code object; it need not exist.
    """
    path = os.path.abspath(filename)
    if filename.startswith("<") or not os.path.exists(path) or _is_installed(path):
        folder = os.getcwd()
    else:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        while os.path.exists(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
    # A home folder under version control holds projects and is none.
    home = os.path.expanduser("~")
    candidate = folder
    while candidate != home and os.path.dirname(candidate) != candidate:
        if any(os.path.exists(os.path.join(candidate, marker)) for marker in ROOT_MARKERS):
            return candidate
        candidate = os.path.dirname(candidate)
    return folder


class Scope:
    """The code that is vaccinated.

    Args:
        kind: ``"function"`` (what is decorated, or the program that is run, alone), ``"project"``, ``"packages"`` or ``"all"``.
        root: the project's root folder, for a project.
        packages: dotted names; a name stands for the module and all that is in the package.
    """

    __slots__ = ("_folders", "_inside_packages", "_real_root", "kind", "packages", "root")

    def __init__(self, kind: str, *, root: str = "", packages: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.root = root
        self.packages = packages
        self._real_root = os.path.realpath(root) if root else ""
        self._inside_packages = _inside(packages)
        # Each import asks, and all the files of a folder have the same answer.
        self._folders: dict[str, bool] = {}

    @classmethod
    def of(cls, argument: ScopeArgument, filename: str) -> Scope:
        """Make a scope from what the user wrote.

        Args:
            argument: see `ScopeArgument`.
            filename: the file whose project is meant by ``"project"``.

        Raises:
            UsageError: `argument` is nothing of the kind.
        """
        if argument == "project":
            return cls("project", root=project_root(filename))
        if argument in ("function", "all"):
            return cls(str(argument))
        names = () if isinstance(argument, str) else tuple(argument)
        if not names or not all(type(name) is str and name for name in names):
            raise UsageError(
                f"the scope {argument!r} is not known",
                remedy='Give "function", "project", "all" or a list of package names, like ["mypackage"].',
            )
        return cls("packages", packages=names)

    @classmethod
    def decode(cls, text: str, filename: str) -> Scope:
        """Make a scope from `encode`'s text or from a word that a user put into DAIFU_SCOPE.

        Args:
            text: ``all``, ``function``, ``project``, ``project:FOLDER`` or names of packages with commas between.
            filename: the file whose project is meant by a plain ``project``.
        """
        kind, colon, root = text.partition(":")
        if kind == "project" and colon:
            return cls("project", root=os.path.abspath(root))
        if text in ("", "project", "all", "function"):
            return cls.of(text or "project", filename)
        return cls("packages", packages=tuple(name.strip() for name in text.split(",") if name.strip()))

    def encode(self) -> str:
        """Return the scope as text, for the environment of child processes."""
        if self.kind == "project":
            return f"project:{self.root}"
        return ",".join(self.packages) if self.kind == "packages" else self.kind

    def covers(self, module: str, filename: str) -> bool:
        """Tell whether a module's code is vaccinated.

        Args:
            module: the dotted name of the module.
            filename: the file that the code comes from.
        """
        if module in _OWN_PACKAGES or module.startswith(_INSIDE_OWN):
            return False
        folder = os.path.dirname(filename)
        answer = self._folders.get(folder)
        if answer is None:
            answer = self._covers_file(os.path.abspath(filename)) and not filename.startswith("<")
            if os.path.isabs(folder):
                self._folders[folder] = answer
        if answer or self.kind not in ("function", "packages"):
            return answer
        if module in self.packages or module.startswith(self._inside_packages):
            return not _lies_in(os.path.abspath(filename), _OWN_FOLDER)
        return module in _PROGRAM_NAMES and not is_library(os.path.abspath(filename))

    def _covers_file(self, path: str) -> bool:
        """Tell whether a file is covered whatever the module is called; `path` is absolute."""
        if self.kind == "all":
            return not _lies_in(path, _OWN_FOLDER)
        if self.kind != "project" or is_library(path):
            return False
        if _lies_in(path, self.root):
            return True
        path = os.path.realpath(path)
        return _lies_in(path, self._real_root) and not is_library(path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scope):
            return NotImplemented
        return (self.kind, self.root, self.packages) == (other.kind, other.root, other.packages)

    def __hash__(self) -> int:
        return hash((self.kind, self.root, self.packages))

    def __repr__(self) -> str:
        return f"Scope({self.encode()!r})"
