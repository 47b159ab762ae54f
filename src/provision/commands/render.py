"""Write the notebook and the cell of Colab targets, or say whether those that are there are what
spec and lock make.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.lock import ensure_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import (
    get_driver_and_context,
    raise_refusals,
    runs_in_browser,
)
from provision.effects import (
    MakeFolder,
    ProgressCallback,
    RemoveFileIfUnmodified,
    System,
    WriteFile,
)
from provision.errors import UsageError
from provision.kinds.models import ColabTarget
from provision.lock import Lock
from provision.plan import Action
from provision.state import Ledger, create_empty_state
from provision.state_store import LocalStore
from provision.targets import TargetContext
from provision.targets.colab import ColabDriver, RenderedFiles, build_colab_link

_URL = re.compile(
    r"https://[A-Za-z0-9][^\s\"'\\<>]*|http://(127\.0\.0\.1|localhost)(:\d+)?/[^\s\"'\\<>]*"
)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How render is to go about it: only look, the folder (None: beside the spec), where the
    payload will be fetched from ("": it is in the cell).
    """

    check: bool = False
    out: Path | None = None
    payload_url: str = ""
    lock_wait_s: float = 0


@dataclass(frozen=True, slots=True)
class RenderedTarget:
    """What became of one target's files: those in `differing` were written, or would be; `link`
    opens the notebook once it is pushed, where that is known.
    """

    context: TargetContext
    made: RenderedFiles
    folder: Path
    files: tuple[str, ...]
    differing: tuple[str, ...]
    record: Mapping[str, Any]
    link: str | None
    copies: tuple[str, ...] = ()
    """Names of the cells of which the notebook has an edited copy, which stays."""


def render(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    wanted: RenderOptions,
    system: System,
    progress: ProgressCallback,
) -> tuple[RenderedTarget, ...]:
    """Return what was written for each of the targets, all Colab targets where none is named; with
    `check` what would be, and nothing is written.

    Files beside the spec are recorded, so that a report can come home and `destroy` can remove
    them. Raises LockError when the lock is missing or does not
    hold, Refused with everything that a target refuses, UsageError for a target of another kind.
    """
    if wanted.payload_url and not _URL.fullmatch(wanted.payload_url):
        raise UsageError(
            f"{wanted.payload_url} is no address for a payload",
            hint="name an https address, as in https://example.com/NAME.payload",
        )
    chosen = _select_colab_targets(loaded, names)
    lock = ensure_lock(loaded, system, progress, frozen=True).lock
    if wanted.check or wanted.out is not None:
        nothing = Ledger(create_empty_state(""))
        found = tuple(
            _render_target(loaded, lock, name, wanted, nothing, system) for name in chosen
        )
        for _, action in () if wanted.check else found:
            _perform(action, wanted, system, progress)
        return tuple(rendering for rendering, _ in found)
    return _render_and_record(loaded, lock, chosen, wanted, system, progress)


def _select_colab_targets(loaded: LoadedSpec, names: tuple[str, ...]) -> tuple[str, ...]:
    targets = loaded.spec.targets
    known = tuple(name for name, target in targets.items() if isinstance(target, ColabTarget))
    listed = (
        f"its targets: {', '.join(f'{name} ({target.kind})' for name, target in targets.items())}"
    )
    for name in names:
        if name not in known:
            what = (
                f"target {name} is of kind {targets[name].kind}, which has no notebook"
                if name in targets
                else f"the spec has no target {name}"
            )
            raise UsageError(what, why=listed, hint="name a target of kind colab")
    if not known:
        raise UsageError(
            "the spec has no target of kind colab",
            why=listed,
            hint="add one, as in `colab: {kind: colab}` under targets",
        )
    return tuple(dict.fromkeys(names)) or known


def _render_target(
    loaded: LoadedSpec, lock: Lock, name: str, wanted: RenderOptions, ledger: Ledger, system: System
) -> tuple[RenderedTarget, Action]:
    kind, context = get_driver_and_context(loaded, lock, name, system)
    assert isinstance(kind, ColabDriver)  # noqa: S101
    folder = context.folder.parent if wanted.out is None else wanted.out.absolute()
    observed = kind.observe_folder(folder, context, ledger, system, url=wanted.payload_url)
    raise_refusals(loaded, kind.refusals(context, observed))
    (action,) = kind.plan(context, observed)
    differing = tuple(
        effect.path.name for effect in action.effects if isinstance(effect, WriteFile)
    )
    link = build_colab_link(folder / observed.rendered.notebook_name, system)
    return RenderedTarget(
        context,
        observed.rendered,
        folder,
        tuple(observed.rendered.merge_files({})),
        differing,
        action.record or {},
        link,
        observed.rendered.find_edited_copies(observed.existing_files),
    ), action


def _render_and_record(
    loaded: LoadedSpec,
    lock: Lock,
    chosen: tuple[str, ...],
    wanted: RenderOptions,
    system: System,
    progress: ProgressCallback,
) -> tuple[RenderedTarget, ...]:
    store = LocalStore(loaded.folder, system)
    done = []
    with store.exclusive(wanted.lock_wait_s, progress):
        ledger = store.load_ledger()
        found = [_render_target(loaded, lock, name, wanted, ledger, system) for name in chosen]
        state = ledger.state
        for rendering, action in found:
            _perform(action, wanted, system, progress)
            if (
                runs_in_browser(rendering.context)
                and state.resource(action.address, action.part) != action.record
            ):
                before, state = state, state.after_action(action)
                store.save(state, expecting=before.serial)
            done.append(rendering)
    return tuple(done)


def _perform(
    action: Action, wanted: RenderOptions, system: System, progress: ProgressCallback
) -> None:
    """Write the files, and do nothing else that an apply would do."""
    if wanted.out is not None:
        system.perform(MakeFolder(wanted.out.absolute()), progress)
    for effect in action.effects:
        if isinstance(effect, WriteFile | RemoveFileIfUnmodified):
            system.perform(effect, progress)
