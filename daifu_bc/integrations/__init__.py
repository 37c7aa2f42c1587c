"""What particular libraries need; loaded only if they are."""

from __future__ import annotations

from daifu_bc.install import importer


def install() -> None:
    """Prepare for libraries that need something of us; none of them is imported by this."""
    importer.when_imported("torch._dynamo.bytecode_transformation", "daifu_bc.integrations.torch:install")
    importer.when_imported("torch._dynamo", "daifu_bc.integrations.torch:watch")
    importer.when_imported("pydevd", "daifu_bc.integrations.pydevd.hooks:install")


def engine_loaded() -> None:
    """Prepare for libraries whose ways the verdict has to know; before the engine is loaded nobody asks for one."""
    importer.when_imported("asyncio.tasks", "daifu_bc.integrations.asyncio:install")
    importer.when_imported(
        "torch.utils.data._utils.signal_handling", "daifu_bc.integrations.dataloader:install"
    )
