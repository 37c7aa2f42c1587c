"""The documentation: links lead somewhere, the README's commands exist, every kind of error is explained."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def string_constants(path: Path, name: str) -> set[str]:
    """Return the strings that are assigned to a name anywhere in a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.Constant):
            found.add(str(value.value))
    return found


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_readme_has_two_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tasks = re.findall(r"^python3 make\.py (\w+)$", text, re.MULTILINE)
    assert tasks == ["demo", "test"]
    source = (ROOT / "make.py").read_text(encoding="utf-8")
    assert all(f'"{task}": (' in source for task in tasks)


def test_every_kind_of_error_is_explained() -> None:
    slugs = string_constants(ROOT / "daifu_bc" / "errors.py", "slug") - {"error"}
    assert slugs
    assert slugs <= anchors(ROOT / "docs" / "reference.md")
