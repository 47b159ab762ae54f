"""The tier of a verification: that of the spec, of an option, or of a deeper stored verdict."""

from __future__ import annotations

from dataclasses import replace

from provision.commands.shared.load import LoadedSpec
from provision.effects.system import Reader
from provision.errors import UsageError
from provision.spec import TIERS, Spec
from provision.state import State
from provision.targets import AnyDriver, TargetContext
from provision.targets.stored_verdict import Validity, VerificationRecord, assess_validity


def override_tier(loaded: LoadedSpec, tier: str) -> LoadedSpec:
    """Return a spec whose targets are verified with a tier, whatever the spec says.

    Raises:
        UsageError: the tier does not run the spec's command.
    """
    if tier == "inventory" and loaded.spec.verify.command:
        raise UsageError(
            "tier inventory does not run verify.command",
            hint="omit --tier, or use --tier quick",
        )
    declared = loaded.declared and _with_tier(loaded.declared, tier)
    return loaded._replace(spec=_with_tier(loaded.spec, tier), declared=declared)


def with_verified_tier(
    driver: AnyDriver, context: TargetContext, state: State, reader: Reader
) -> TargetContext:
    """Return a target with the tier of its stored verdict, if that is deeper and still applies."""
    stored = VerificationRecord.find(state, context.address)
    if stored is None or stored.tier not in TIERS:
        return context
    if TIERS.index(stored.tier) <= TIERS.index(context.spec.verify.tier):
        return context
    sandbox_spec = context.sandbox_spec and _with_tier(context.sandbox_spec, stored.tier)
    spec = _with_tier(context.spec, stored.tier)
    deeper = replace(context, spec=spec, sandbox_spec=sandbox_spec)

    def digest_with(probe: str) -> str:
        return driver.expectations_digest(deeper, probe)

    validity = assess_validity(stored, digest_with, context.folder, reader)
    return context if validity is Validity.OTHER_EXPECTATIONS else deeper


def _with_tier(spec: Spec, tier: str) -> Spec:
    return spec.model_copy(update={"verify": spec.verify.model_copy(update={"tier": tier})})
