"""Writes the files of targets that a user runs elsewhere, or compares them with spec and lock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from provision.commands.lock import ensure_lock
from provision.commands.shared.executor import open_executor
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.package_contents import build_wheels
from provision.commands.shared.target_plans import get_driver_and_context, raise_refusals
from provision.commands.shared.target_selection import list_targets
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import UsageError
from provision.lock import Lock
from provision.plan import Action
from provision.state import Ledger, create_empty_state
from provision.targets import AnyDriver, TargetContext, find_driver
from provision.targets.capabilities import Rendered, Rendering

_URL = re.compile(
    r"https://[A-Za-z0-9][^\s\"'\\<>]*|http://(127\.0\.0\.1|localhost)(:\d+)?/[^\s\"'\\<>]*"
)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Options of `render`.

    Attributes:
        check: Compare only; nothing is written.
        out: The folder; None for that of the spec.
        payload_url: Where the payload will be fetched from; "" puts it into the cell.
    """

    check: bool = False
    out: Path | None = None
    payload_url: str = ""
    lock_wait_s: float = 0


@dataclass(frozen=True, slots=True)
class RenderedTarget:
    """The rendering of one target for a folder."""

    driver: AnyDriver
    context: TargetContext
    folder: Path
    rendering: Rendering

    @property
    def differing(self) -> tuple[str, ...]:
        """The names of the files that were written, or would be."""
        effects = self.rendering.action.effects
        return tuple(effect.path.name for effect in effects if isinstance(effect, WriteFile))


def render(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    options: RenderOptions,
    system: System,
    progress: ProgressCallback,
) -> tuple[RenderedTarget, ...]:
    """Write the files of the named targets, or of all that have files.

    Files next to the spec are recorded, so that a report can be imported for them and `destroy`
    removes them.

    Raises:
        LockError: the lock is missing or does not match.
        Refused: every field of the spec that a target cannot honour.
        UsageError: a target of another kind.
    """
    if options.payload_url and not _URL.fullmatch(options.payload_url):
        raise UsageError(
            f"{options.payload_url} is not a valid URL for the payload",
            hint="use an HTTPS URL, such as https://example.com/NAME.payload",
        )
    targets = _select_targets(loaded, names)
    lock = ensure_lock(loaded, system, progress, frozen=True).lock
    build_wheels(loaded, lock, targets, system, progress)
    if options.check or options.out is not None:
        unrecorded = Ledger(create_empty_state(""))
        rendered = [_render(loaded, lock, name, options, unrecorded, system) for name in targets]
        for target in () if options.check else rendered:
            _write_files(target.rendering.action, options.out, system, progress)
        return tuple(rendered)
    with open_executor(loaded, system, progress, lock_wait_s=options.lock_wait_s) as executor:
        ledger = executor.ledger
        rendered = [_render(loaded, lock, name, options, ledger, system) for name in targets]
        for target in rendered:
            if target.rendering.is_recorded:
                executor.perform(target.driver, target.rendering.action, announce=False)
            else:
                _write_files(target.rendering.action, options.out, system, progress)
    return tuple(rendered)


def is_rendered(loaded: LoadedSpec, reader: Reader) -> bool:
    """Return whether a spec has a target with files, and a notebook named after the spec."""
    if not any(
        isinstance(find_driver(loaded.spec, name), Rendered) for name in loaded.spec.targets
    ):
        return False
    names = reader.list_folder(loaded.path.parent)
    return any(name.startswith(f"{loaded.stem}.") and name.endswith(".ipynb") for name in names)


def _select_targets(loaded: LoadedSpec, names: tuple[str, ...]) -> tuple[str, ...]:
    targets = loaded.spec.targets
    rendered = tuple(
        name for name in targets if isinstance(find_driver(loaded.spec, name), Rendered)
    )
    kinds = list_targets(loaded)
    for name in names:
        if name in rendered:
            continue
        problem = f"the spec has no target `{name}`"
        if name in targets:
            problem = f"target `{name}` is of kind {targets[name].kind}, which has no notebook"
        raise UsageError(problem, why=f"its targets: {kinds}", hint="select a target of kind colab")
    if not rendered:
        raise UsageError(
            "the spec has no target of kind colab",
            why=f"its targets: {kinds}",
            hint="add one under `targets`, such as `colab: {kind: colab}`",
        )
    return tuple(dict.fromkeys(names)) or rendered


def _render(
    loaded: LoadedSpec,
    lock: Lock,
    name: str,
    options: RenderOptions,
    ledger: Ledger,
    system: System,
) -> RenderedTarget:
    driver, context = get_driver_and_context(loaded, lock, name, system)
    if not isinstance(driver, Rendered):
        raise UsageError(f"target `{name}` has no notebook")
    folder = context.folder.parent if options.out is None else options.out.absolute()
    rendering = driver.render(context, folder, ledger, system, payload_url=options.payload_url)
    raise_refusals(loaded, rendering.refusals)
    return RenderedTarget(driver, context, folder, rendering)


def _write_files(
    action: Action, out: Path | None, system: System, progress: ProgressCallback
) -> None:
    """Write the files without a record of them."""
    if out is not None:
        system.perform(MakeFolder(out.absolute()), progress)
    for effect in action.effects:
        system.perform(effect, progress)
