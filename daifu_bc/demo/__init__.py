"""`daifu demo`: a real training run that crashes, is held, repaired, and goes on."""

from __future__ import annotations

from daifu_bc.demo.demonstration import main

__all__ = ["main"]
