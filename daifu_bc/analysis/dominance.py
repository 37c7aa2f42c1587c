"""Which instruction every way to another one leads through (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm)."""

from __future__ import annotations

from collections.abc import Callable

from daifu_bc.analysis.flow import Flow


def dominators(flow: Flow, predecessors: Callable[[int], list[int]]) -> dict[int, int]:
    """The immediate dominator of each place over the normal edges.

    Args:
        flow: the analysed code.
        predecessors: the places from which a place normally follows.

    Returns:
        Place -> its dominator. The first instruction and those of handlers, which only an exception leads to, have none.
    """
    thrown = _thrown_into(flow)
    handlers = {flow.index[entry.target] for entry in flow.entries}
    roots = [0, *sorted(handlers - {target for targets in thrown.values() for target in targets})]
    before_thrown = {target: place for place, targets in thrown.items() for target in targets}
    post = _post_order(flow, roots, thrown)
    number = {place: rank for rank, place in enumerate(post)}
    found: dict[int, int] = {}
    done = set(roots)
    changed = True
    while changed:
        changed = False
        for place in reversed(post):
            if place in roots:
                continue
            befores = predecessors(place)
            if place in before_thrown:
                befores = [*befores, before_thrown[place]]
            best = _meet([before for before in befores if before in done], found, number)
            done.add(place)
            if found.get(place) != best:
                changed = True
                if best is None:
                    del found[place]
                else:
                    found[place] = best
    return found


def _thrown_into(flow: Flow) -> dict[int, list[int]]:
    """Places of `await` and `yield from` that an exception is thrown into, and where they go on (CLEANUP_THROW, 3.12+).

    They go on in the middle of their expression, so that these are edges like the normal ones.
    """
    found: dict[int, list[int]] = {}
    for entry in flow.entries:
        target = flow.index[entry.target]
        if flow.instructions[target].name == "CLEANUP_THROW":
            found.setdefault(flow.index[entry.start], []).append(target)
    return found


def _post_order(flow: Flow, roots: list[int], thrown: dict[int, list[int]]) -> list[int]:
    """The places that can be reached, each behind those that follow it (but for loops)."""
    seen: set[int] = set()
    post: list[int] = []
    for root in roots:
        if root in seen or flow.stacks[root] is None:
            continue
        seen.add(root)
        work = [(root, iter(flow.successors(root) + thrown.get(root, [])))]
        while work:
            here, following = work[-1]
            fresh = next((place for place in following if place not in seen), None)
            if fresh is None:
                work.pop()
                post.append(here)
            else:
                seen.add(fresh)
                work.append((fresh, iter(flow.successors(fresh) + thrown.get(fresh, []))))
    return post


def _meet(places: list[int], found: dict[int, int], number: dict[int, int]) -> int | None:
    """The nearest common dominator of places; None if they have different roots."""
    if not places:
        return None
    best: int | None = places[0]
    for place in places[1:]:
        other: int | None = place
        while best != other:
            if best is None or other is None:
                return None
            if number[best] < number[other]:
                best = found.get(best)
            else:
                other = found.get(other)
    return best
