"""The kind `colab`: a runtime of Google Colab."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from provision.diagnostics import Route
from provision.facts import Facts, lazy_tables
from provision.facts.schema_platforms import ColabRuntime, ColabShape
from provision.kinds.base import (
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
from provision.kinds.places import Place, place_word
from provision.kinds.settings import LargerMachine, StarterField
from provision.kinds.shared_refusals import refuse_cuda_toolkit
from provision.spelling import with_article

_STANDARD_GIB = 16
"""RAM in GiB below which a machine resembles the one whose /dev/shm was measured (12.7 GiB). Our
choice.
"""


class ColabTarget(TargetModel):
    """A Google Colab runtime."""

    kind: Literal["colab"]
    runtime: str = Field(default="latest", pattern=r"^(latest|\d{4}\.\d{2})$")
    """Version of the runtime, such as 2026.07."""
    via: Literal["browser", "colab-cli"] = "browser"
    """How the cell runs: by a person in a browser, or through Google's command-line program."""
    isolation: Literal["system", "venv"] = "system"
    """Install on top of the runtime's packages (system), or in a separate environment (venv)."""
    shape: Literal["standard", "high"] = "standard"
    """Machine shape; high has more RAM, on paid plans."""
    bucket: str | None = Field(default=None, pattern=r"^gs://[a-z0-9][a-z0-9._-]{2,}(/.*)?$")
    """Folder in Cloud Storage for the cell's payload and for its report."""
    payload: Literal["embedded", "bucket", "repository"] | None = None
    """Where the cell's payload is: in the cell (embedded; the default without a bucket), in the
    bucket (the default with one), or in a file next to the notebook, which is committed to a public
    repository on GitHub.
    """

    @property
    def payload_place(self) -> Literal["embedded", "bucket", "repository"]:
        """Where the payload is, declared or by default."""
        return self.payload or ("embedded" if self.bucket is None else "bucket")


class Colab(Kind):
    """Runtimes of Colab, which bring Python, a driver and several hundred packages."""

    name = "colab"
    model = ColabTarget
    driver = "provision.targets.colab.driver:ColabDriver"
    rules = ("provision.rules.colab",)
    lock_fields = ("runtime", "isolation")
    secret_sources = frozenset({"colab"})
    reference_hint = "store it in Colab's secrets: {colab: NAME}"
    runs_code = True
    installs_origins = True
    mounts_drive = True

    has_runtimes = True

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return the newest runtime with a version: `latest` changes without notice."""
        dated = max(name for name in facts.runtimes if name != "latest")
        return {"runtime": StarterField(dated)}

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
        card = "without a GPU" if shape.card == "none" else f"with {with_article(shape.card)}"
        machine = f"a Colab machine {card} ({shape.shape} shape)"
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
        machine = "a Colab machine with the standard shape"
        return Capacity(float(shm.value) * 2**30, machine, route, shm.evidence)

    def machine_with_ram(
        self, ram_gib: float, target: TargetFacts, facts: Facts
    ) -> LargerMachine | None:
        """Return the high shape if it has so much RAM."""
        own = target.target
        assert isinstance(own, ColabTarget)  # noqa: S101
        high = find_shape(target.gpu_settings.gpu, "high", facts)
        if own.shape == "high" or high is None or (high.ram_gib or 0) < ram_gib:
            return None
        return LargerMachine("shape", "high", high.ram_gib or 0)

    def places(self, facts: Facts) -> Iterator[Place]:
        """Yield a place for each card that Colab offers, with the newest runtime and the others."""
        runtimes = reversed(list(facts.runtimes.values()))
        pinnable = [row for row in runtimes if row.runtime != "latest"]
        for card in dict.fromkeys(row.card for row in facts.shapes):
            name = f"colab-{place_word(None if card == 'none' else facts.card(card))}"
            base = Place(name, "", {"kind": self.name}, card, "")
            newest = _at_runtime(base, "newest runtime", facts.runtimes["latest"])
            yield newest._replace(is_default=card == facts.conditions["free GPU"].value)
            for runtime in pinnable:
                target = {**base.target, "runtime": runtime.runtime}
                pinned = base._replace(name=f"{name}@{runtime.runtime}", target=target)
                yield _at_runtime(pinned, f"runtime {runtime.runtime}", runtime)

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield fields without effect, and machines and runtimes that Colab does not have."""
        own = target.target
        assert isinstance(own, ColabTarget)  # noqa: S101
        yield from super().refusals(target, fields, facts)
        yield from _runtime_refusals(own, target.route, facts)
        yield from _gpu_refusals(own, target, facts)
        yield from refuse_cuda_toolkit(
            fields, "a runtime", "remove the field; a runtime with a GPU has its own toolkit"
        )
        for name in fields.index_folders:
            yield Refusal(
                ("indexes", name),
                f"the index {name} is on this machine, where the runtime cannot reach it",
                "use an index with an HTTP or HTTPS address",
            )
        yield from _storage_refusals(own, target.route)
        for drive_route in fields.drive_routes if own.via == "colab-cli" else ():
            yield Refusal(
                drive_route,
                "Google Drive is mounted only for notebooks in a browser, where its user allows "
                "it, not with `via: colab-cli`",
                f"set `via: browser`, or `paths: {{{drive_route[-1]}: /content/FOLDER}}` on target "
                f"{target.name}",
            )
        for name, sources in fields.secrets.items():
            if own.via == "colab-cli":
                yield Refusal(
                    target.secret_route(name),
                    "Colab provides secrets only to notebooks in a browser, not with `via: "
                    "colab-cli`",
                    "set `via: browser`, or remove the secret",
                    rule="SEC004",
                )
            elif "colab" not in sources:
                yield Refusal(
                    target.secret_route(name),
                    "a Colab notebook can read only secrets stored in Colab",
                    f"use {{colab: {name}}}",
                    rule="SEC004",
                )


def _at_runtime(place: Place, label: str, runtime: ColabRuntime) -> Place:
    gpu = "without a GPU" if place.gpu == "none" else f"with {place.gpu}"
    text = f"Colab {gpu}, {label} (Python {runtime.minor}, torch {runtime.torch})"
    return place._replace(description=text, python=runtime.minor, torch=runtime.torch)


def find_shape(gpu: Gpu, shape: str, facts: Facts) -> ColabShape | None:
    """Return the machine with a card in a shape, None if Colab has none.

    Some GPUs exist in the high shape only: a spec without `shape` gets that shape. A spec with
    shape: high never gets another shape.
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
            f"the packages of Colab runtime {target.runtime} are unknown",
            f"use one of {', '.join(facts.runtimes)}, or set `isolation: venv`",
            rule="IMG021",
        )
    if target.via == "colab-cli" and target.runtime != "latest":
        yield Refusal(
            (*route, "runtime"),
            "`via: colab-cli` always starts the newest runtime",
            "set `runtime: latest`, or `via: browser`",
            rule="IMG023",
        )


def _storage_refusals(own: ColabTarget, route: Route) -> Iterator[Refusal]:
    if own.payload == "bucket" and own.bucket is None:
        yield Refusal(
            (*route, "payload"),
            "`payload: bucket` requires a bucket",
            "set `bucket: gs://BUCKET/FOLDER`, or remove `payload`",
        )
    for field in ("bucket", "payload") if own.via == "colab-cli" else ():
        if getattr(own, field) is not None:
            yield Refusal(
                (*route, field),
                f"`{field}` has no effect with `via: colab-cli`, which sends the cell and "
                "downloads its report",
                f"remove `{field}`, or set `via: browser`",
            )


def _gpu_refusals(own: ColabTarget, target: TargetFacts, facts: Facts) -> Iterator[Refusal]:
    gpu, route = target.gpu_settings.gpu, target.gpu_settings.gpu_route
    if find_shape(gpu, own.shape, facts) is None:
        if find_shape(gpu, "standard", facts) is not None:
            yield Refusal(
                (*target.route, "shape"),
                f"Colab has no machine with {with_article(gpu.type)} in the high shape",
                "remove `shape`, or use a different GPU",
            )
        else:
            offered = ", ".join(dict.fromkeys(row.card for row in facts.shapes))
            yield Refusal(
                route, f"Colab does not offer {gpu.type}", f"use one of {offered}", rule="IMG025"
            )
    if not gpu.is_none and gpu.count > 1:
        yield Refusal(
            route,
            f"a Colab runtime has only one GPU, but {gpu.count} are requested",
            f"set `gpu: {gpu.type}`",
            rule="IMG026",
        )
