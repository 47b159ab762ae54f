"""Writes the files of targets that a user runs elsewhere, or compares them with spec and lock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from provision.commands.lock import ensure_lock
from provision.commands.shared.executor import Executor
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import get_driver_and_context, raise_refusals
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, System
from provision.errors import UsageError
from provision.lock import Lock
from provision.plan import Action
from provision.state import Ledger, create_empty_state
from provision.state_store import LocalStore
from provision.targets import AnyDriver, TargetContext, find_driver
from provision.targets.capabilities import Rendered, RenderedContent, Rendering

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
    """Files of one target.

    Attributes:
        differing: Names of the files that were written, or would be.
        link: Opens the notebook once it is pushed; None if that is unknown.
        copies: Cells of which the notebook keeps an edited copy.
    """

    context: TargetContext
    made: RenderedContent
    folder: Path
    files: tuple[str, ...]
    differing: tuple[str, ...]
    link: str | None
    copies: tuple[str, ...] = ()


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
            f"{options.payload_url} is no address for a payload",
            hint="name an https address, as in https://example.com/NAME.payload",
        )
    targets = _select_targets(loaded, names)
    lock = ensure_lock(loaded, system, progress, frozen=True).lock
    if options.check or options.out is not None:
        unrecorded = Ledger(create_empty_state(""))
        files = [_render(loaded, lock, name, options, unrecorded, system) for name in targets]
        for target in () if options.check else files:
            _write_files(target.rendering.action, options.out, system, progress)
        return tuple(target.result for target in files)
    store = LocalStore(loaded.folder, system)
    with store.exclusive(options.lock_wait_s, progress):
        ledger = store.load_ledger()
        files = [_render(loaded, lock, name, options, ledger, system) for name in targets]
        executor = Executor(store, ledger, system, progress, loaded.spec.registry)
        for target in files:
            if target.rendering.is_recorded:
                executor.perform(target.driver, target.rendering.action, announce=False)
            else:
                _write_files(target.rendering.action, options.out, system, progress)
    return tuple(target.result for target in files)


@dataclass(frozen=True, slots=True)
class _TargetFiles:
    driver: AnyDriver
    rendering: Rendering
    result: RenderedTarget


def _select_targets(loaded: LoadedSpec, names: tuple[str, ...]) -> tuple[str, ...]:
    targets = loaded.spec.targets
    rendered = tuple(
        name for name in targets if isinstance(find_driver(loaded.spec, name), Rendered)
    )
    kinds = ", ".join(f"{name} ({target.kind})" for name, target in targets.items())
    for name in names:
        if name in rendered:
            continue
        problem = f"the spec has no target {name}"
        if name in targets:
            problem = f"target {name} is of kind {targets[name].kind}, which has no notebook"
        hint = "name a target of kind colab"
        raise UsageError(problem, why=f"its targets: {kinds}", hint=hint)
    if not rendered:
        raise UsageError(
            "the spec has no target of kind colab",
            why=f"its targets: {kinds}",
            hint="add one, as in `colab: {kind: colab}` under targets",
        )
    return tuple(dict.fromkeys(names)) or rendered


def _render(
    loaded: LoadedSpec,
    lock: Lock,
    name: str,
    options: RenderOptions,
    ledger: Ledger,
    system: System,
) -> _TargetFiles:
    driver, context = get_driver_and_context(loaded, lock, name, system)
    if not isinstance(driver, Rendered):
        raise UsageError(f"target {name} has no notebook")
    folder = context.folder.parent if options.out is None else options.out.absolute()
    rendering = driver.render(context, folder, ledger, system, payload_url=options.payload_url)
    raise_refusals(loaded, rendering.refusals)
    effects = rendering.action.effects
    result = RenderedTarget(
        context,
        rendering.content,
        folder,
        rendering.file_names,
        tuple(effect.path.name for effect in effects if isinstance(effect, WriteFile)),
        rendering.link,
        rendering.edited_copies,
    )
    return _TargetFiles(driver, rendering, result)


def _write_files(
    action: Action, out: Path | None, system: System, progress: ProgressCallback
) -> None:
    """Write the files without a record of them."""
    if out is not None:
        system.perform(MakeFolder(out.absolute()), progress)
    for effect in action.effects:
        system.perform(effect, progress)
