"""The kind `colab`: a runtime of Google Colab."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from provision.diagnostics import Route
from provision.facts import Facts, lazy_tables
from provision.facts.schema_platforms import ColabRuntime, ColabShape
from provision.kinds.base import (
    NOT_SUPPORTED_YET,
    Capacity,
    Gpu,
    Kind,
    ProvidedSoftware,
    ProvidedVersion,
    Refusal,
    Resource,
    TargetFacts,
    TargetFields,
    TargetModel,
)

_STANDARD_GIB = 16
"""RAM in GiB below which a machine is like the one whose /dev/shm was measured (12.7); ours."""


class ColabTarget(TargetModel):
    """A Google Colab runtime."""

    kind: Literal["colab"]
    runtime: str = Field(default="latest", pattern=r"^(latest|\d{4}\.\d{2})$")
    """Version of the runtime, as in 2026.07."""
    via: Literal["browser", "colab-cli"] = "browser"
    """Way in which the cell is run: by a person in a browser, or through Google's command line."""
    isolation: Literal["system", "venv"] = "system"
    """On top of the runtime's packages (system), or in a separate environment (venv)."""
    shape: Literal["standard", "high"] = "standard"
    """Machine shape; high has more RAM, on paid plans."""


class Colab(Kind):
    """Runtimes of Colab, which bring Python, a driver and several hundred packages."""

    name = "colab"
    model = ColabTarget
    driver = "provision.targets.colab.driver:ColabDriver"
    rules = ("provision.rules.colab",)
    lock_fields = ("runtime", "isolation")
    secret_sources = frozenset({"colab"})
    reference_hint = "name it in Colab's own store: {colab: NAME}"

    has_runtimes = True

    def base_runtime(self, target: TargetFacts) -> ColabRuntime | None:
        """Return the runtime of an environment that is not isolated from it."""
        own = target.target
        assert isinstance(own, ColabTarget)  # noqa: S101
        return target.runtime if own.isolation == "system" else None

    def preinstalled(self, target: TargetFacts) -> Mapping[str, str] | None:
        """Return the packages of the runtime's image, which differ with and without a GPU."""
        runtime = self.base_runtime(target)
        if runtime is None:
            return None
        tables = lazy_tables.load_colab_packages()
        with_gpu = tables[runtime.runtime]
        if target.gpu_settings.is_nvidia:
            return with_gpu
        return tables.get(f"{runtime.runtime}-cpu", with_gpu)

    def provides(
        self, target: ColabTarget, route: Route, facts: Facts, *, gpu: bool
    ) -> ProvidedSoftware:
        """Return the runtime and its versions."""
        driver = None
        if gpu:
            host = facts.conditions["host driver"]
            driver = ProvidedVersion(
                host.value, "Colab's machines", (*route, "kind"), host.evidence
            )
        runtime = facts.runtimes.get(target.runtime)
        if runtime is None:
            return ProvidedSoftware(driver=driver)
        source = f"Colab runtime {target.runtime}", (*route, "runtime"), runtime.evidence
        glibc = ProvidedVersion(runtime.glibc, *source)
        python = ProvidedVersion(runtime.minor, *source)
        return ProvidedSoftware(None, runtime, driver, glibc, python)

    def capacity(self, resource: Resource, target: TargetFacts, facts: Facts) -> Capacity | None:
        """Return the RAM and disk of the machine's shape, and the /dev/shm of a standard one."""
        own = target.target
        assert isinstance(own, ColabTarget)  # noqa: S101
        shape = find_shape(target.gpu_settings.gpu, own.shape, facts)
        if shape is None:
            return None
        route = (*target.route, "shape")
        card = "without a GPU" if shape.card == "none" else f"with {shape.card}"
        machine = f"a Colab machine {card}, {shape.shape} shape"
        if resource == "disk":
            if not shape.disk_gb:
                return None
            route = target.gpu_settings.gpu_route
            return Capacity(shape.disk_gb * 10**9, machine, route, shape.evidence)
        if not shape.ram_gib:
            return None
        if resource == "ram":
            return Capacity(shape.ram_gib * 2**30, machine, route, shape.evidence)
        if own.shape == "high" or shape.ram_gib >= _STANDARD_GIB:
            return None
        shm = facts.conditions["shm"]
        machine = "a Colab machine of standard shape"
        return Capacity(float(shm.value) * 2**30, machine, route, shm.evidence)

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield fields without effect, and machines and runtimes that Colab does not have."""
        own = target.target
        assert isinstance(own, ColabTarget)  # noqa: S101
        yield from super().refusals(target, fields, facts)
        yield from _runtime_refusals(own, target.route, facts)
        yield from _gpu_refusals(own, target, facts)
        if fields.cuda_toolkit is not None:
            yield Refusal(
                ("cuda_toolkit",),
                f"installing a CUDA toolkit on a runtime: {NOT_SUPPORTED_YET}",
                "remove the field; a runtime with a GPU brings its own toolkit",
            )
        for name in fields.index_folders:
            yield Refusal(
                ("indexes", name),
                f"the index {name} lies on this machine, out of the runtime's reach",
                "name an index with an http address",
            )
        for name, source in fields.secrets.items():
            if own.via == "colab-cli":
                yield Refusal(
                    ("secrets", name),
                    "Colab gives its secrets to a browser only, and via: colab-cli has none",
                    "write via: browser, or leave it out",
                    rule="SEC004",
                )
            elif source != "colab":
                yield Refusal(
                    ("secrets", name),
                    "a notebook takes secrets from Colab's own store only",
                    f"write {{colab: {name}}}",
                    rule="SEC004",
                )


def find_shape(gpu: Gpu, shape: str, facts: Facts) -> ColabShape | None:
    """Return the machine with a card in a shape, None if Colab has none.

    Some cards come in the high shape only: a spec that leaves `shape` out gets that one. A spec
    with shape: high never gets another.
    """
    card = None if gpu.is_none else facts.card(gpu.type)
    if card is None and not gpu.is_none:
        return None
    name = "none" if card is None else card.name
    shapes = {row.shape: row for row in facts.shapes if row.card == name}
    return shapes.get(shape) or (shapes.get("high") if shape == "standard" else None)


def _runtime_refusals(target: ColabTarget, route: Route, facts: Facts) -> Iterator[Refusal]:
    if target.runtime not in facts.runtimes and target.isolation == "system":
        yield Refusal(
            (*route, "runtime"),
            f"what Colab runtime {target.runtime} holds is not known",
            f"write one of {', '.join(facts.runtimes)}, or isolation: venv",
            rule="IMG021",
        )
    if target.via == "colab-cli" and target.runtime != "latest":
        yield Refusal(
            (*route, "runtime"),
            "via: colab-cli gets the newest runtime, whatever is asked for",
            "write runtime: latest, or via: browser",
            rule="IMG023",
        )


def _gpu_refusals(own: ColabTarget, target: TargetFacts, facts: Facts) -> Iterator[Refusal]:
    gpu, route = target.gpu_settings.gpu, target.gpu_settings.gpu_route
    if find_shape(gpu, own.shape, facts) is None:
        if find_shape(gpu, "standard", facts) is not None:
            yield Refusal(
                (*target.route, "shape"),
                f"Colab has no machine of shape high with {gpu.type}",
                "leave shape out, or name another card",
            )
        else:
            offered = ", ".join(dict.fromkeys(row.card for row in facts.shapes))
            yield Refusal(
                route, f"Colab has no {gpu.type}", f"take one of {offered}", rule="IMG025"
            )
    if not gpu.is_none and gpu.count > 1:
        yield Refusal(
            route,
            f"a Colab runtime has one GPU, and {gpu.count} are asked for",
            f"write gpu: {gpu.type}",
            rule="IMG026",
        )
