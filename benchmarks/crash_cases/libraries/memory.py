"""Plays a card with little memory: what is asked for beyond its size is really refused, by the operating system."""

from __future__ import annotations

import resource

MEGABYTE = 2**20


def limit(megabytes: int) -> None:
    """Let this process have so much memory more than it has now; the allocator of torch raises beyond that."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + megabytes * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
