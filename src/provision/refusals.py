"""Everything that plan or lock refuses from the text of a spec alone; lint reports the same."""

from __future__ import annotations

from collections.abc import Iterator

from provision.facts import Facts
from provision.kinds.base import Refusal, TargetFields
from provision.spec import CARD_REQUIREMENTS, Spec
from provision.target_facts import target_facts


def find_target_refusals(spec: Spec, name: str, facts: Facts) -> tuple[Refusal, ...]:
    """Return everything that one target of a spec cannot do."""
    own = spec.for_target(name)
    used_indexes = {package.index for package in own.packages}
    fields = TargetFields(
        packages=frozenset(package.key for package in own.packages),
        cuda_toolkit=own.cuda_toolkit,
        secrets={variable: secret.source for variable, secret in own.secrets.items()},
        card_requirements=tuple(
            key for key in CARD_REQUIREMENTS if getattr(own.requires, key) is not None
        ),
        index_folders=tuple(
            name
            for name, index in own.indexes.items()
            if name in used_indexes and index.url.startswith("file:")
        ),
    )
    target = target_facts(spec, facts, name)
    return tuple(target.kind.refusals(target, fields, facts))


def find_unlockable(spec: Spec) -> tuple[Refusal, ...]:
    """Return every choice of a spec that cannot be locked for any target."""
    return tuple(_unlockable(spec))


def _unlockable(spec: Spec) -> Iterator[Refusal]:
    kind_of = spec.registry.kind_of
    by_conda = any(kind_of(target).uses_conda(target) for target in spec.targets.values())
    fix = "write manager: conda at a local target, or remove it"
    for number, package in enumerate(spec.packages):
        if package.source == "conda" and not by_conda:
            yield Refusal(
                ("packages", number),
                "source: conda is for targets with `manager: conda`, and there is none",
                fix,
            )
    if "pypi" in spec.indexes:
        yield Refusal(
            ("indexes", "pypi"),
            "pypi is the name of the default index: a mirror of it is named by pip's "
            "index-url or PROVISION_INDEX_PYPI",
            "give the index another name",
            rule="SEC002",
        )
    if spec.conda_packages and not by_conda:
        yield Refusal(
            ("conda_packages",),
            "conda packages are for targets with `manager: conda`, and there is none",
            fix,
        )
