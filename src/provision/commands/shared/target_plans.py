"""What apply would do: places, their actions, and whether verification follows; made the same way
by plan and by apply.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from provision.commands.adopt import refuse_foreign_removals
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.multi_target import ErrorsByTarget
from provision.commands.shared.sandbox_spec import with_package_sources
from provision.diagnostics import RouteLocation as SpecPlace
from provision.effects import Reader
from provision.errors import ExternalError, ProvisionError, Refused, UsageError
from provision.kinds.models import ColabTarget, LocalTarget
from provision.lock import Lock, digest_of
from provision.plan import Action, Operation, Plan, Verification
from provision.state import Ledger, State
from provision.targets import DRIVERS, Driver, Refusal, TargetContext
from provision.targets.workbench import RESTART_NOTE, is_former_part
from provision.verification import digest_of_expectations, expectations_of, probe_digest

_LIMIT = 2**20
NOTEBOOK_PART = "notebook"
"""The part of a target that is a notebook: its report comes home by hand."""


@dataclass(frozen=True, slots=True)
class TargetPlans:
    """A plan with the places, by target name, that it is carried out at."""

    plan: Plan
    contexts: dict[str, TargetContext]

    @property
    def awaits_report(self) -> bool:
        """Whether a notebook's report is still to come home."""
        return any(
            self.plan.verifications[name].needed
            for name, context in self.contexts.items()
            if runs_in_browser(context)
        )


def select_targets(
    loaded: LoadedSpec, names: tuple[str, ...], *, everything: bool
) -> tuple[str, ...]:
    """Return the targets meant: those named, the single one, or all with `everything`; raises
    UsageError when that is not clear.
    """
    known = tuple(loaded.spec.targets)
    wrong = [name for name in names if name not in known]
    if wrong:
        raise UsageError(
            f"the spec has no target {wrong[0]}", hint=f"its targets: {', '.join(known)}"
        )
    if names:
        return tuple(dict.fromkeys(names))
    if len(known) == 1 or everything:
        return known
    listed = ", ".join(f"{name} ({target.kind})" for name, target in loaded.spec.targets.items())
    raise UsageError(
        "the spec has several targets",
        why=listed,
        hint="name them with --target, or take all with --all",
    )


def refuse_unknown_kinds(loaded: LoadedSpec, names: tuple[str, ...]) -> None:
    """Raise Refused for the first target of a kind that this version does not make; asks nothing of
    the world.
    """
    for name in names:
        kind = loaded.spec.targets[name].kind
        if kind not in DRIVERS:
            span = loaded.source.span(SpecPlace(("targets", name, "kind")))
            hint = (
                f"kinds made by this version: {', '.join(sorted(DRIVERS))}; pick another "
                "target with --target"
            )
            raise Refused(
                f"{span.file}:{span.start.line}:{span.start.column}: targets of kind "
                f"{kind} cannot be made by this version",
                hint=hint,
            )


def get_driver_and_context(
    loaded: LoadedSpec, lock: Lock, name: str, reader: Reader
) -> tuple[Driver, TargetContext]:
    """Return a target's kind and the place it stands for; raises Refused when this version does not
    know the kind.
    """
    refuse_unknown_kinds(loaded, (name,))
    spec = (loaded.declared or loaded.spec).for_target(name)
    kind = DRIVERS[spec.targets[name].kind]
    promised = loaded.spec.for_target(name) if loaded.declared is not None else None
    said = shlex.quote(str(loaded.path)) + (
        f" --target {name}" if len(loaded.spec.targets) > 1 else ""
    )
    context = TargetContext(
        spec,
        name,
        loaded.stem,
        loaded.folder,
        lock,
        kind.platform or reader.platform(),
        loaded.sandbox_sources,
        promised,
        said,
    )
    if loaded.sandbox_sources is None:
        return kind, context
    return kind, replace(
        context,
        sandbox_sources=with_package_sources(
            loaded.sandbox_sources, lock, context.environment, reader
        ),
    )


def is_notebook(context: TargetContext) -> bool:
    """Tell whether the environment of a place is made by a notebook."""
    return isinstance(context.spec.targets[context.target], ColabTarget)


def runs_in_browser(context: TargetContext) -> bool:
    """Tell whether a person runs what was made of a target, in a notebook."""
    target = context.spec.targets[context.target]
    return isinstance(target, ColabTarget) and target.via == "browser"


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
    """Return the plan for some targets; raises Refused with everything that the spec asks and a
    target does not do.

    With `failed`, the error of one target is kept there by its name, and the plan is that of the
    others.
    """
    actions: list[Action] = []
    verifications, contexts = {}, {}
    for name in names:
        try:
            context, steps, check = _plan_target(
                loaded, lock, name, ledger, reader, verify=verify, adopt=adopt
            )
        except ProvisionError as error:
            if failed is None:
                raise
            failed[name] = error
            continue
        actions += steps
        contexts[name], verifications[name] = context, check
    state = ledger.state
    spec_digest = digest_of(
        {"asked": dict(lock.inputs), "spec": json.loads(loaded.spec.model_dump_json())}
    )
    plan = Plan(
        tuple(actions),
        verifications,
        spec_digest,
        lock.digest,
        state.lineage if state.serial else "",
        state.serial,
    )
    return TargetPlans(plan, contexts)


def _plan_target(
    loaded: LoadedSpec,
    lock: Lock,
    name: str,
    ledger: Ledger,
    reader: Reader,
    *,
    verify: bool,
    adopt: bool,
) -> tuple[TargetContext, tuple[Action, ...], Verification]:
    kind, plain = get_driver_and_context(loaded, lock, name, reader)
    context = replace(plain, adopt=adopt)
    observed = kind.observe(context, ledger, reader)
    raise_refusals(loaded, kind.refusals(context, observed))
    steps = tuple(kind.plan(context, observed))
    refuse_foreign_removals(
        ledger, (effect for step in steps for effect in step.effects), context.folder
    )
    stored = ledger.state.resource(context.address, "verification") or {}
    changed = any(
        _changes_environment(step, ledger.state) and not _is_answered(step, stored)
        for step in steps
    )
    check = plan_verification(context, ledger.state, reader, changed=changed, asked=verify)
    if (
        not check.needed and kind.platform is None and stored.get("verdict") == "failed"
    ):  # what made it fail may have been put right since
        check = replace(check, needed=True, reason=f"the last one failed, on {stored['at'][:10]}")
    return context, steps, _restarting(check, steps, ledger.state)


def _is_answered(step: Action, stored: Mapping[str, Any]) -> bool:
    """Tell whether the stored report answers a notebook's question, although its files are written
    again.
    """
    return (
        step.part == NOTEBOOK_PART
        and bool(stored.get("nonce"))
        and (step.record or {}).get("nonce") == stored["nonce"]
    )


def _changes_environment(step: Action, state: State) -> bool:
    """Tell whether a step changes what is verified: of an instance that is recorded, only a new run
    does.
    """
    if is_former_part(step.part):
        return False
    made = state.resource(step.address, step.part) if step.part == "instance" else None
    return step.operation is not Operation.KEEP and (
        made is None or step.record is None or step.record.get("nonce") != made.get("nonce")
    )


def _restarting(check: Verification, steps: tuple[Action, ...], state: State) -> Verification:
    """Return a verification with what it has to do with an instance: that one is started anew, or,
    where its run was verified already, restarted for it.
    """
    step = next(
        (
            step
            for step in steps
            if step.part == "instance" and step.operation in (Operation.KEEP, Operation.CHANGE)
        ),
        None,
    )
    if step is None or not check.needed:
        return check
    stored, record = state.resource(step.address, "verification"), step.record or {}
    if stored and stored.get("nonce") == record.get("nonce"):
        return replace(check, reason=f"{check.reason}; {RESTART_NOTE}")
    return (
        replace(check, reason="it is started anew") if _changes_environment(step, state) else check
    )


def check_saved_plan(path: Path, plan: Plan, reader: Reader) -> None:
    """Raise Refused when a saved plan is not the plan that would be made now, naming what moved."""
    try:
        saved = json.loads(reader.read(path, _LIMIT))
    except (ValueError, RecursionError):
        raise ExternalError(
            f"{path} is no saved plan", hint="make it with `provision plan SPEC --out FILE`"
        ) from None
    now = plan.fingerprint()
    moved = [key for key in now if not isinstance(saved, dict) or saved.get(key) != now[key]]
    if moved:
        raise Refused(
            f"the saved plan {path} is stale",
            why=f"since it was made these moved: {', '.join(moved)}",
            hint="make and review it again with --out",
        )


def plan_verification(
    context: TargetContext,
    state: State,
    reader: Reader,
    *,
    changed: bool = False,
    asked: bool = False,
) -> Verification:
    """Return whether a place is to be verified and why: its stored verdict counts for the same
    promises, judged by the same probe, only.
    """
    tier = context.spec.verify.tier
    stored = state.resource(context.address, "verification")
    if asked:
        return Verification(True, tier, "asked for with --verify")
    if is_notebook(context):
        made = state.resource(context.address, NOTEBOOK_PART) or {}
        if stored is None or not stored["verdict"]:
            return Verification(
                True,
                tier,
                "its report has not come home yet"
                if runs_in_browser(context)
                else "it was not verified yet",
            )
        if changed or stored.get("nonce") != made.get("nonce"):
            because = (
                f"the verdict of {stored['at'][:10]} ({stored['verdict']}) is of an earlier "
                "notebook, and is void"
            )
            return Verification(True, tier, because)
    if changed:
        return Verification(True, tier, "the environment changes")
    if stored is None or not stored["verdict"]:
        return Verification(True, tier, "it was not verified yet")
    if isinstance(context.spec.targets[context.target], LocalTarget) and not reader.exists(
        context.folder / str(stored["report"])
    ):
        return Verification(True, tier, "its report is gone")
    instance = state.resource(context.address, "instance")
    if instance is not None and instance.get("ended"):
        return Verification(True, tier, "its last run ended without a proof")
    if instance is not None and stored.get("nonce") != instance.get("nonce"):
        return Verification(True, tier, "the device has not reported yet")
    if stored["expectations"] != expectations_digest(context):
        return Verification(True, tier, "what is promised of it changed since it was verified")
    return Verification(
        False, tier, f"{stored['verdict']} on {stored['at'][:10]}, and the same is promised since"
    )


def expectations_digest(context: TargetContext) -> str:
    """Return the digest over what is promised of a place and the probe that would judge it."""
    prefix = DRIVERS[context.spec.targets[context.target].kind].get_interpreter(context).prefix
    return digest_of_expectations(
        expectations_of(
            context.effective_spec, context.target, context.lock, context.environment, prefix
        ),
        probe_digest(),
    )


def raise_refusals(loaded: LoadedSpec, refusals: tuple[Refusal, ...]) -> None:
    """Raise Refused with everything that a target refuses, each at its place in the spec; nothing
    happens where there is none.
    """
    if not refusals:
        return
    lines = []
    for refusal in refusals:
        span = loaded.source.span(SpecPlace(refusal.route))
        lines.append(
            f"{span.file}:{span.start.line}:{span.start.column}: {refusal.why}"
            + (f" ({refusal.hint})" if refusal.hint else "")
        )
    raise Refused("this target cannot be made here", why="\n".join(lines))
