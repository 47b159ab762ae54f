"""The targets of a command: plans, and errors that stop one of several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.package_contents import (
    find_package_refusals,
    read_package_contents,
)
from provision.commands.shared.project_code import (
    add_code_notes,
    find_code_refusals,
    read_spec_code,
)
from provision.commands.shared.sandbox_spec import with_package_sources
from provision.commands.shared.verified_tier import with_verified_tier
from provision.effects.system import Notice, ProgressCallback, Reader
from provision.errors import ExternalError, ProvisionError, Refused, StateError
from provision.kinds.base import Refusal
from provision.lock import Lock, digest_of
from provision.plan import Action, Plan, Verification
from provision.state import Ledger, State
from provision.targets import AnyDriver, TargetContext, find_driver, get_driver
from provision.targets.capabilities import AcceptsReports
from provision.targets.stored_verdict import VerificationRecord

_MAX_PLAN_BYTES = 2**20
ErrorsByTarget = dict[str, ProvisionError]
"""The error that stopped a target, by its name."""


@dataclass(frozen=True, slots=True)
class TargetPlans:
    """A plan with the contexts of its targets by name."""

    plan: Plan
    contexts: dict[str, TargetContext]

    @property
    def awaits_report(self) -> bool:
        """True if a person has to bring a report."""
        return any(
            self.plan.verifications[name].needed
            for name, context in self.contexts.items()
            if runs_in_browser(context)
        )


def list_recorded_targets(
    loaded: LoadedSpec, state: State, is_capable: Callable[[AnyDriver], bool]
) -> tuple[str, ...]:
    """Return the targets of a spec that the state records, of the kinds with a capability."""
    names: list[str] = []
    for name in loaded.spec.targets:
        driver = find_driver(loaded.spec, name)
        if driver is not None and is_capable(driver):
            location = driver.location(f"{loaded.stem}/{name}", loaded.folder, state)
            if location is not None:
                names.append(name)
    return tuple(names)


def missing_instance_error(name: str, apply: str) -> Refused:
    """Return the error for a target without a recorded instance; `apply` is the command line."""
    return Refused(f"no instance is recorded for {name}", hint=f"create one with `{apply}`")


def refuse_unknown_kinds(loaded: LoadedSpec, names: tuple[str, ...]) -> None:
    """Raise Refused for the first target of a kind that this version does not make."""
    for name in names:
        if find_driver(loaded.spec, name) is None:
            kind = loaded.spec.targets[name].kind
            made = sorted(known.name for known in loaded.spec.registry.kinds if known.driver)
            hint = f"supported kinds: {', '.join(made)}; select another target with --target"
            raise Refused(
                f"{loaded.position('targets', name, 'kind')}: this version of "
                f"provision cannot create targets of kind {kind}",
                hint=hint,
            )


def get_driver_and_context(
    loaded: LoadedSpec, lock: Lock, name: str, reader: Reader, *, adopt: bool = False
) -> tuple[AnyDriver, TargetContext]:
    """Return a target's driver and context.

    Raises:
        Refused: this version does not make targets of its kind.
    """
    refuse_unknown_kinds(loaded, (name,))
    spec = sandbox_spec = loaded.spec.for_target(name)
    if loaded.declared is not None:
        # Programs run without a GPU in a sandbox, and need the variables for that.
        spec = loaded.declared.for_target(name).model_copy(update={"env": sandbox_spec.env})
    driver = find_driver(spec, name)
    assert driver is not None  # noqa: S101
    context = TargetContext(
        spec,
        name,
        loaded.stem,
        loaded.folder,
        lock,
        driver.platform or reader.platform(),
        loaded.sandbox_sources,
        sandbox_spec=sandbox_spec if loaded.declared is not None else None,
        spec_path=loaded.path,
        target_option=name if len(loaded.spec.targets) > 1 else "",
        adopt=adopt,
        code=read_spec_code(loaded, spec, name, lock, reader),
    )
    if any(package.origin is not None for package in lock.packages):
        environment = lock.environment(name, context.platform)
        elsewhere = driver.platform is not None
        sources = read_package_contents(loaded, lock, environment, reader, elsewhere=elsewhere)
        context = replace(context, sources=sources)
    if loaded.sandbox_sources is None:
        return driver, context
    simulated = with_package_sources(loaded.sandbox_sources, lock, context.environment, reader)
    return driver, replace(context, sandbox_sources=simulated)


def runs_in_browser(context: TargetContext) -> bool:
    """Return whether a person runs what was made of a target."""
    driver = get_driver(context)
    return isinstance(driver, AcceptsReports) and driver.is_run_by_user(context)


def plan_targets(
    loaded: LoadedSpec,
    lock: Lock,
    names: tuple[str, ...],
    ledger: Ledger,
    reader: Reader,
    *,
    verify: bool = False,
    adopt: bool = False,
    failed: ErrorsByTarget | None = None,
) -> TargetPlans:
    """Return the plan for some targets.

    With `failed`, an error of one target is collected there, and the plan is that of the others.

    Raises:
        Refused: every field of the spec that a target cannot honour.
    """
    actions: list[Action] = []
    verifications: dict[str, Verification] = {}
    contexts: dict[str, TargetContext] = {}
    for name in names:
        try:
            driver, context = get_driver_and_context(loaded, lock, name, reader, adopt=adopt)
            if not verify:
                context = with_verified_tier(driver, context, ledger.state, reader)
            steps = _plan_actions(loaded, driver, context, ledger, reader)
            verifications[name] = _plan_verification(
                driver, context, ledger.state, reader, steps, requested=verify
            )
        except ProvisionError as error:
            if failed is None:
                raise
            failed[name] = error
            continue
        actions += steps
        contexts[name] = context
    state = ledger.state
    inputs = {"asked": dict(lock.inputs), "spec": json.loads(loaded.spec.model_dump_json())}
    codes = (context.code.digest for context in contexts.values() if context.code is not None)
    plan = Plan(
        tuple(actions),
        verifications,
        digest_of(inputs),
        lock.digest,
        state.lineage if state.serial else "",
        state.serial,
        next(codes, ""),
        {source.name: source.digest for context in contexts.values() for source in context.sources},
    )
    return TargetPlans(plan, contexts)


def _plan_actions(
    loaded: LoadedSpec, driver: AnyDriver, context: TargetContext, ledger: Ledger, reader: Reader
) -> tuple[Action, ...]:
    observed = driver.observe(context, ledger, reader)
    own = (*find_code_refusals(context), *find_package_refusals(context))
    raise_refusals(loaded, (*own, *driver.refusals(context, observed)))
    actions = add_code_notes(context, driver.plan(context, observed))
    effects = (effect for action in actions for effect in action.effects)
    ledger.refuse_foreign_removals(effects, context.folder)
    return actions


def _plan_verification(
    driver: AnyDriver,
    context: TargetContext,
    state: State,
    reader: Reader,
    actions: tuple[Action, ...],
    *,
    requested: bool,
) -> Verification:
    planned = driver.plan_verification(context, state, reader, actions, requested=requested)
    stored = VerificationRecord.find(state, context.address)
    # On this machine, the cause of a failure may have been fixed since.
    if stored is None or planned.needed or driver.platform is not None:
        return planned
    if stored.verdict == "failed":
        reason = f"the last verification failed on {stored.at[:10]}"
        return replace(planned, needed=True, reason=reason)
    return planned


def check_saved_plan(path: Path, plan: Plan, reader: Reader) -> None:
    """Raise Refused if a saved plan is not the plan that would be made now."""
    try:
        saved = json.loads(reader.read(path, _MAX_PLAN_BYTES))
    except (ValueError, RecursionError):
        raise ExternalError(
            f"{path} is not a saved plan", hint="create one with `provision plan SPEC --out FILE`"
        ) from None
    now = plan.fingerprint()
    moved = [key for key in now if not isinstance(saved, dict) or saved.get(key) != now[key]]
    if moved:
        raise Refused(
            f"the saved plan {path} is stale",
            why=f"the following parts have changed since it was saved: {', '.join(moved)}",
            hint="save the plan again with --out, and review it",
        )


def raise_refusals(loaded: LoadedSpec, refusals: tuple[Refusal, ...]) -> None:
    """Raise Refused with every refusal at its line of the spec, if there is any."""
    if not refusals:
        return
    lines = []
    for refusal in refusals:
        hint = f" ({refusal.hint})" if refusal.hint else ""
        lines.append(f"{loaded.position(*refusal.route)}: {refusal.why}{hint}")
    raise Refused("this target cannot be created as declared", why="\n".join(lines))


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code of several results: 1 before 2 before 3; else 0."""
    return min((code for code in codes if code in (1, 2, 3)), default=0)


@contextmanager
def collect_errors(
    name: str,
    names: tuple[str, ...],
    failed: ErrorsByTarget | None,
    progress: ProgressCallback,
    settle: Callable[[ProvisionError], None] = lambda _: None,
) -> Iterator[None]:
    """Collect an error of one target among several in `failed`.

    The error of a single target, or without `failed`, is raised, and so is one of the ledger.
    `settle` handles what the error left, so that the others can go on; if it fails, they do not.
    """
    try:
        yield
    except StateError:
        raise
    except ProvisionError as error:
        if len(names) == 1 or failed is None:
            raise
        try:
            settle(error)
        except ProvisionError as trouble:
            note = "cleaning up also failed, so the remaining targets were skipped"
            error.hint = f"{error.hint}\n{note}: {trouble.what}".lstrip()
            raise error from trouble
        progress(Notice(f"target `{name}` failed: {error.what}"))
        failed[name] = error


@contextmanager
def note_on_interrupt(note: Callable[[], str]) -> Iterator[None]:
    """Add a note to the last lines of a command that is interrupted in the block."""
    try:
        yield
    except Exception:
        raise
    except BaseException as interruption:
        with suppress(ProvisionError):  # a damaged ledger must not hide why the command ends
            if text := note():
                interruption.add_note(text)
        raise


def leftover_notice(contexts: Iterable[TargetContext], ledger: Ledger) -> str:
    """Return the notices about what keeps running and costs money; "" for none."""
    notices = (get_driver(context).running_notice(context, ledger) for context in contexts)
    return "\n".join(filter(None, notices))
