"""Checks files of other tools for places, without a spec."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provision import source
from provision.commands.import_files import check_groups
from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.notebook_folder import list_neighbors
from provision.commands.shared.places import find_places, list_places, measure_places
from provision.commands.shared.spec_text_check import read_text_as_file
from provision.diagnostics import Diagnostic, RelatedLocation, Severity
from provision.effects.system import Reader
from provision.errors import ProvisionError, SourceError
from provision.facts import Facts, cuda_of
from provision.imports.checked_places import (
    CheckedPlace,
    PlaceFinding,
    merge_findings,
    name_places,
)
from provision.imports.imported_source import ImportedSource, OriginLookup
from provision.imports.merge import merge_files
from provision.imports.model import ImportedFile, ImportedProject, Leftover, Setting
from provision.imports.read import read_file, read_text
from provision.imports.required_python import find_excluded_python
from provision.imports.spec_text import write_spec
from provision.imports.torch_builds import find_builds_without_index, find_unpublished_builds
from provision.kinds import Registry
from provision.kinds.places import Place
from provision.rules import LintContext, run_rules, run_rules_on_notebook
from provision.source.findings import make_finding

if TYPE_CHECKING:
    from provision.imports.notebook import NotebookFile
    from provision.imports.notebook_source import NotebookSource
    from provision.spec import Spec

_SPEC_NAME = Path("provision.yaml")
_REPEATED = {"NTB004": "IMG029", "NTB010": "IMG031"}
"""Rules about the cells of a notebook, and the rules about specs that report the same."""
_REPEATING = {"NTB017": "PYT001"}
"""The same, where the finding about the spec is shown."""
ABOUT_SPECS = ("SPC", "PYT002", "GPU010", "GCP022", "PKG022", "PKG026")
"""Rules about what provision does with a spec: it refuses a field, builds a package without
isolation, passes no key to a tracker, or cannot verify the Python or the GPU.
"""
_OF_TRAINER = frozenset({"PKG001", "PKG028"})
"""Rules about Trainer. A spec with transformers trains with it unless `training` names another
framework; other files do not say what uses transformers.
"""
_NO_BUILD = "CUD002"
"""The rule about builds of torch at places with a GPU; IMP004 reports the same at every place."""
_PYTHON_OF_COLAB = "IMG020"
"""The rule about the Python of a runtime; IMP006 reports the range that a project requires."""
_OF_CELLS = ("NTB013", "NTB014")
"""Rules about cells and commands that cannot be read, which the import leaves out too."""
_OF_CONDA = "it is a conda package, and the rules cover only Python packages"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The files by name, their content, the findings, the places, and the unread files."""

    files: tuple[tuple[Path, ImportedFile], ...]
    project: ImportedProject
    source: ImportedSource
    findings: tuple[PlaceFinding, ...]
    places: tuple[CheckedPlace, ...]
    failed_files: tuple[tuple[Path, ProvisionError], ...] = ()

    @property
    def exit_code(self) -> int:
        """2 if a file could not be read, 1 if a finding is an error, else 0."""
        if self.failed_files:
            return 2
        return int(any(one.finding.severity is Severity.ERROR for one in self.findings))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings, each with its places in the message."""
        return tuple(name_places(one, len(self.places)) for one in self.findings)

    @property
    def leftovers(self) -> tuple[Leftover, ...]:
        """The parts of the files that were not checked, and that no finding is about."""
        of_conda = (
            Leftover(package.span, f"{package.requirement} is not checked", _OF_CONDA)
            for package in self.project.conda_packages
        )
        reported = {one.finding.where for one in self.findings if one.finding.id in _OF_CELLS}
        parts = (
            part
            for part in self.project.leftovers
            if part.kind == "no-field" and part.span not in reported
        )
        return (*parts, *of_conda)


def check_files(
    paths: Sequence[Path], reader: Reader, place_names: Sequence[str], groups: Collection[str] = ()
) -> CheckResult:
    """Check files for places; nothing is written, executed or downloaded.

    Args:
        paths: The files, which are checked together as one environment.
        reader: Reads them, the files that they include, and the properties of this machine.
        place_names: Names of places; () for the one that a notebook was saved on, else for the
            defaults.
        groups: Groups and extras to check too.

    Raises:
        UsageError: there is no place or group with a name.
    """
    facts = select_facts(paths[0], reader)
    known = list_places(facts)
    chosen = find_places(place_names, known)
    files, failed = _read_files(paths, reader)
    contents = [file for _, file in files]
    if groups and contents:
        check_groups(contents, groups)
    project = merge_files(contents, groups=groups)
    notebooks = _read_notebooks([path for path, _ in files], reader)
    chosen = chosen or _default_places(project, known, facts)
    chosen, registry = measure_places(chosen, facts, reader)
    checker = _PlaceChecker(
        facts, registry, _for_any_python(project, notebooks), contents, notebooks, reader
    )
    places = tuple(map(checker.check, chosen)) if files else ()
    return CheckResult(
        files,
        project,
        ImportedSource(project, notebooks),
        merge_findings(places),
        places,
        failed,
    )


class _PlaceChecker(NamedTuple):
    """Asks the rules about the same content for one place after the other."""

    facts: Facts
    registry: Registry
    project: ImportedProject
    files: Sequence[ImportedFile]
    notebooks: Sequence[NotebookSource]
    reader: Reader

    def check(self, place: Place) -> CheckedPlace:
        """Return the findings about the files at a place, at their original text."""
        project, name = _for_gpu(self.project, place, self.facts), place.base
        written = write_spec(
            project,
            {name: place.target},
            gpu=place.gpu,
            python=place.python,
            platform=place.platform,
            built=self._built_by_pip(),
        )
        (document,) = source.read_spec_file(_SPEC_NAME, read_text_as_file(written.text))
        spec, problems = source.validate_source(document, self.registry)
        findings = [*document.diagnostics, *problems]
        if spec is not None:
            found = run_rules(LintContext(spec, document, self.facts))
            findings += map(
                self._cap_severity, (one for one in found if not one.id.startswith(ABOUT_SPECS))
            )
        origins = OriginLookup(project, written)
        original = [one for one in map(origins.to_original, findings) if one is not None]
        if spec is None and not original:
            raise ProvisionError(
                f"the files cannot be checked against the rules for {place.name}",
                why="; ".join(finding.message for finding in findings),
                hint="import the files into a spec (see `provision import --help`), then lint it",
            )
        original += _find_mistakes(project)
        python = spec.python if spec is not None else place.python
        original = [*self._with_findings_of_files(original, place, python)]
        in_cells = [
            finding
            for notebook in self.notebooks
            for finding in _check_notebook(notebook.notebook, self.facts, spec, self.reader)
        ]
        shown = {(finding.id, finding.where) for finding in original}
        in_cells = [one for one in in_cells if (_REPEATING.get(one.id), one.where) not in shown]
        repeated = {(_REPEATED.get(finding.id), finding.where) for finding in in_cells}
        original = [one for one in original if (one.id, one.where) not in repeated] + in_cells
        return CheckedPlace(place, python, tuple(_at_place(one, name) for one in original))

    def _cap_severity(self, finding: Diagnostic) -> Diagnostic:
        """Return a finding about Trainer as a warning if nothing shows that Trainer is used."""
        if finding.id not in _OF_TRAINER or finding.severity is not Severity.ERROR:
            return finding
        if _uses_trainer(self.notebooks, self.facts):
            return finding
        return finding._replace(severity=Severity.WARNING)

    def _built_by_pip(self) -> frozenset[str]:
        """Return the packages that pip builds, or builds packages for, without being asked."""
        facts = self.facts
        return frozenset((*facts.source_only, *facts.wheel_releases, *facts.brought_sources))

    def _with_findings_of_files(
        self, findings: Iterable[Diagnostic], place: Place, python: str
    ) -> Iterator[Diagnostic]:
        """Yield findings, and in place of some those that name what the files contain.

        Args:
            findings: Those of the rules, which know the spec only.
            place: The place.
            python: The Python that the files were checked with.
        """
        unpublished = tuple(find_unpublished_builds(self.project, self.facts))
        lines = {finding.where for finding in unpublished}
        without_index = find_builds_without_index(self.project, self.files, self.facts, place.torch)
        excluded = find_excluded_python(self.project, place.python, python)
        for finding in findings:
            if finding.id == _NO_BUILD and unpublished:
                continue
            if finding.id == _PYTHON_OF_COLAB and excluded is not None:
                excluded = excluded._replace(severity=finding.severity)
                continue
            yield finding
        yield from unpublished
        yield from (finding for finding in without_index if finding.where not in lines)
        if excluded is not None:
            yield excluded


def _read_files(
    paths: Sequence[Path], reader: Reader
) -> tuple[
    tuple[tuple[Path, ImportedFile], ...],
    tuple[tuple[Path, ProvisionError], ...],
]:
    """Return the files that can be read, and the errors of the others."""
    files: list[tuple[Path, ImportedFile]] = []
    failed: list[tuple[Path, ProvisionError]] = []
    for path in dict.fromkeys(paths):
        try:
            files.append((path, read_file(path, reader)))
        except SourceError as error:
            failed.append((path, error))
    return tuple(files), tuple(failed)


def _read_notebooks(paths: Iterable[Path], reader: Reader) -> list[NotebookSource]:
    paths = [path for path in paths if path.suffix.lower() == ".ipynb"]
    if not paths:
        return []
    # Most files are no notebooks, and these modules take a tenth of the time of a short command.
    from provision.imports.notebook import read_notebook
    from provision.imports.notebook_source import NotebookSource

    return [NotebookSource(read_notebook(path, read_text(path, reader))) for path in paths]


def _check_notebook(
    notebook: NotebookFile, facts: Facts, spec: Spec | None, reader: Reader
) -> tuple[Diagnostic, ...]:
    from provision.rules.notebook.context import NotebookContext

    neighbors = list_neighbors(Path(notebook.name), reader)
    return run_rules_on_notebook(NotebookContext(notebook, facts, spec, neighbors=neighbors))


def _uses_trainer(notebooks: Iterable[NotebookSource], facts: Facts) -> bool:
    """Return whether a cell of a notebook creates the arguments of a Trainer."""
    if not notebooks:
        return False
    from provision.rules.notebook.context import NotebookContext
    from provision.rules.notebook.trainer_classes import is_trainer_class

    return any(
        is_trainer_class(call, facts)
        for notebook in notebooks
        for call in NotebookContext(notebook.notebook, facts).code.calls
    )


def _default_places(
    project: ImportedProject, places: Sequence[Place], facts: Facts
) -> tuple[Place, ...]:
    """Return the place that a notebook was saved on, and those with its card; else the defaults.

    This machine is the last.
    """
    targets: dict[str, dict[str, Any]] = {}
    gpu = "none"
    for setting in project.settings:
        if setting.route[0] == "targets":
            name, field = map(str, setting.route[1:3])
            targets.setdefault(name, {})[field] = setting.value
        elif setting.route == ("gpu",):
            gpu = str(setting.value)
    card = facts.card(gpu)
    gpu = card.name if card is not None else gpu
    with_card = [place for place in places if place.gpu == gpu and not place.is_this_machine]
    chosen = [
        next((place for place in with_card if target.items() <= place.target.items()), None)
        for target in targets.values()
    ]
    saved = [place for place in chosen if place is not None]
    if saved:
        kinds = {place.target["kind"] for place in saved}
        for place in with_card:
            if place.target["kind"] not in kinds:
                kinds.add(place.target["kind"])
                saved.append(place)
    else:
        saved = [place for place in places if place.is_default]
    return (*saved, *(place for place in places if place.is_this_machine))


def _for_any_python(
    project: ImportedProject, notebooks: Iterable[NotebookSource]
) -> ImportedProject:
    """Return the content without the Python that a notebook was saved with: any may do."""
    names = {notebook.notebook.name for notebook in notebooks}
    return project._replace(
        settings=tuple(
            setting
            for setting in project.settings
            if setting.route != ("python",) or setting.span.file not in names
        )
    )


def _for_gpu(project: ImportedProject, place: Place, facts: Facts) -> ImportedProject:
    """Return the content with the CUDA version of the torch build that pip installs at a place.

    It is that of the default build, if the files name a release of torch and no build of it, and
    the machine brings another release. Without a CUDA card every build runs.
    """
    if place.gpu in ("none", "mps"):
        settings = (setting for setting in project.settings if setting.route != ("cuda",))
        return project._replace(settings=tuple(settings))
    torch = next((package for package in project.packages if package.name == "torch"), None)
    if torch is None or any(setting.route == ("cuda",) for setting in project.settings):
        return project
    release = facts.torch_release(torch.requirement.partition("==")[2].partition(";")[0].strip())
    if release is None or torch.index is not None or release.release == place.torch:
        return project
    flavour = release.default_on(place.platform or "linux-x86_64")
    if flavour == "cpu":
        return project
    built = Setting(("cuda",), cuda_of(flavour), torch.span)
    return project._replace(settings=(*project.settings, built))


def _find_mistakes(project: ImportedProject) -> Iterator[Diagnostic]:
    """Yield the findings of reading the files: they hold at every place."""
    # A line such as torch==2.8.0+cu118 may contradict another one in its release and its build.
    by_line = {conflict.other: conflict for conflict in reversed(project.conflicts)}
    for conflict in reversed(by_line.values()):
        yield make_finding(
            "files-contradict",
            conflict.message,
            conflict.other,
            why="The two lines contradict each other, and only the first was checked.",
            hint="correct one of them",
            related=(RelatedLocation(conflict.where, "this one was checked"),),
        )
    for part in project.leftovers:
        if part.kind == "refused":
            why = part.why or "pip rejects the file because of this line."
            yield make_finding("line-refused", part.message, part.span, why=why, hint=part.help)
        elif part.kind == "unread":
            why = part.why or "Its packages are not checked."
            yield make_finding("include-not-read", part.message, part.span, why=why, hint=part.help)


def _at_place(finding: Diagnostic, name: str) -> Diagnostic:
    """Return a finding without a fix, and without the name of the target, which is the place."""
    target = re.compile(rf"^target `?{name}`?: | (?:of|at|for|on) target `?{name}\b`?")
    help_text = finding.help
    if not help_text and finding.fix is not None:
        help_text = finding.fix.title
    return finding._replace(
        message=target.sub("", finding.message),
        why=target.sub("", finding.why),
        help=target.sub("", help_text),
        fix=None,
    )
