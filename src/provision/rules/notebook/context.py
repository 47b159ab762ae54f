"""The context of rules about notebooks: the notebook, where it runs, and what is installed there.

A place is a target of the spec that the notebook is checked with. Without a spec it is the Colab
runtime that the notebook was saved on, if Colab saved it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from packaging.version import Version

from provision.diagnostics import Span
from provision.facts import Card, Facts, lazy_tables
from provision.facts.versions import parse_version
from provision.imports.notebook import CellInstall, NotebookFile, metadata_text
from provision.kinds.base import TargetFacts
from provision.rules.notebook.python_code import PythonCode, read_python
from provision.spec import Spec
from provision.target_facts import collect_target_facts

_COLAB_KINDS = frozenset({"colab", "colab-enterprise"})
Order = tuple[int, int]
"""The number of a cell and an offset in it: earlier is smaller."""


class NotebookPlace(NamedTuple):
    """A place in which the notebook runs.

    Attributes:
        name: the name in messages, such as "target l4" or "Colab runtime 2026.07".
        is_colab: True if it has the module google.colab and the folder /content.
        python: its Python, such as "3.12".
        platforms: its platforms, such as "linux-x86_64".
        card: the card; None without one, or if the facts do not have it.
        packages: canonical names with versions of the packages that are there before the notebook
            runs; None if they are not known.
        is_runtime: True if the packages are those of a Colab runtime.
    """

    name: str
    is_colab: bool
    python: str
    platforms: tuple[str, ...]
    card: Card | None = None
    packages: Mapping[str, str] | None = None
    is_runtime: bool = False


@dataclass(frozen=True)
class NotebookContext:
    """A notebook, the facts, and the spec and lock that it is checked with.

    Attributes:
        locked: versions by canonical name for each target of the lock; {} without a lock.
        neighbors: modules in the notebook's folder, in lower case; None if they are not known.
    """

    notebook: NotebookFile
    facts: Facts
    spec: Spec | None = None
    locked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    neighbors: frozenset[str] | None = frozenset()

    @cached_property
    def places(self) -> tuple[NotebookPlace, ...]:
        """The places in which the notebook runs; () if they are not known."""
        if self.spec is not None:
            return tuple(map(self._place_of, collect_target_facts(self.spec, self.facts)))
        return (self._saved_place(),) if self.is_saved_by_colab else ()

    @cached_property
    def is_saved_by_colab(self) -> bool:
        """True if Colab saved the notebook, or if it always imports google.colab."""
        return self.notebook.is_for_colab or any(
            found.module.startswith("google.colab") and not found.is_conditional
            for found in self.notebook.imports
        )

    @cached_property
    def code(self) -> PythonCode:
        """The calls and strings of the code cells."""
        return read_python(self.notebook)

    @property
    def installs(self) -> Iterator[CellInstall]:
        """The commands that install packages of pip where the notebook runs."""
        return (
            install
            for install in self.notebook.installs
            if install.tool == "pip" and install.is_taken
        )

    def locked_version(self, package: str) -> str | None:
        """Return the locked public version of a package; None if there is not exactly one."""
        versions = {packages[package] for packages in self.locked.values() if package in packages}
        public = {str(Version(text).public) for text in versions if parse_version(text)}
        return public.pop() if len(public) == 1 else None

    def order(self, cell: int, span: Span) -> Order:
        """Return the position of a span in the notebook."""
        return cell, span.start.offset

    def _place_of(self, target: TargetFacts) -> NotebookPlace:
        assert self.spec is not None  # noqa: S101 - only a spec has targets
        preinstalled = target.kind.preinstalled(target)
        locked = self.locked.get(target.name)
        packages = None
        if preinstalled is not None or locked is not None:
            packages = {**(preinstalled or {}), **(locked or {})}
        return NotebookPlace(
            f"target `{target.name}`",
            target.kind.name in _COLAB_KINDS,
            self.spec.python,
            target.platforms,
            target.card,
            packages,
            is_runtime=preinstalled is not None,
        )

    def _saved_place(self) -> NotebookPlace:
        metadata = self.notebook.metadata
        name = metadata_text(metadata, "colab", "runtimeAttributes", "runtime_version") or "latest"
        runtime = self.facts.runtimes.get(name) or self.facts.runtimes["latest"]
        card = self.facts.card(self.notebook.gpu) if self.notebook.gpu else None
        tables = lazy_tables.load_colab_packages()
        packages = tables.get(runtime.runtime)
        if metadata.get("accelerator") != "GPU" and card is None:
            packages = tables.get(f"{runtime.runtime}-cpu", packages)
        label = "the newest Colab runtime"
        if runtime.runtime != "latest":
            label = f"Colab runtime {runtime.runtime}"
        python, platforms = runtime.minor, ("linux-x86_64",)
        return NotebookPlace(label, True, python, platforms, card, packages, is_runtime=True)
