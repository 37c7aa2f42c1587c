"""Holds a crashed Python program at the crashed statement, lets it be repaired, and lets it go on from there."""

from __future__ import annotations

from daifu_bc import frontends, integrations
from daifu_bc.errors import DaifuError, Refusal
from daifu_bc.install import vaccine
from daifu_bc.install.vaccinate import vaccinate
from daifu_bc.recovery.intercept import intercept as _intercept
from daifu_bc.recovery.resume import delegate as _delegate
from daifu_bc.recovery.resume import follow as _follow
from daifu_bc.recovery.resume import mark as _mark
from daifu_bc.recovery.resume import take as _take
from daifu_bc.recovery.resume import trim as _trim
from daifu_bc.rewrite.first_call import first_call as _first_call

__version__ = "0.1.0"
__all__ = ["DaifuError", "Refusal", "__version__", "vaccinate"]

frontends.register()
vaccine.starters.append(integrations.install)
