"""Merges the content of several files into that of one spec."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from provision.diagnostics import Route
from provision.facts import flavour_of, load_facts
from provision.facts.compatibility import CUDA_PACKAGES
from provision.imports.conda_names import list_names, translate_conda_packages
from provision.imports.model import (
    Conflict,
    ImportedFile,
    ImportedPackage,
    ImportedProject,
    Leftover,
    Setting,
    SourceText,
)
from provision.imports.package_merge import merge_packages
from provision.imports.spec_check import remove_invalid

_CUDA_RUNTIME = "nvidia-cuda-runtime"
_DECLARING = frozenset(("requirements file", "pyproject.toml"))
"""Formats that list the packages somebody chose, if the file is not a resolved set."""
_PINNING = frozenset(("requirements file", "pip freeze", "pylock.toml"))
"""Formats of resolved sets of the package index."""


def merge_files(files: Sequence[ImportedFile], *, groups: Collection[str] = ()) -> ImportedProject:
    """Return the content of files as that of one spec.

    Args:
        files: The files in the order in which their values take precedence.
        groups: Names of the groups and extras whose packages are taken too.
    """
    texts: dict[str, SourceText] = {}
    indexes: dict[str, str] = {}
    chosen: list[ImportedPackage] = []
    limits: list[ImportedPackage] = []
    settings: list[Setting] = []
    leftovers: list[Leftover] = []
    conda_packages: list[ImportedPackage] = []
    needs_cuda = False
    declared = _find_declared(files, groups)
    for file in files:
        texts.update(file.texts)
        leftovers += _without_imported(file, files)
        packages = _rename_indexes(file, indexes)
        packages = _select_groups(packages, groups, leftovers)
        content = translate_conda_packages(packages)
        settings += [*file.settings, *content.settings]
        leftovers += content.leftovers
        conda_packages += content.conda_packages
        own = [package for package in content.packages if not package.is_constraint]
        limits += [package for package in content.packages if package.is_constraint]
        if file.is_resolved:
            limiting = declared if file.format in _PINNING else frozenset[str]()
            own, pinned, has_cuda = _reduce_resolved(own, settings, leftovers, limiting)
            limits += pinned
            needs_cuda = needs_cuda or has_cuda
        chosen += own
    merged = merge_packages(chosen, limits)
    merged_settings, conflicts = _merge_settings(settings)
    used = {package.index for package in merged.packages}
    project = ImportedProject(
        merged.packages,
        merged_settings,
        tuple({package.requirement: package for package in conda_packages}.values()),
        {name: url for name, url in indexes.items() if name in used},
        (*leftovers, *merged.leftovers),
        (*merged.conflicts, *conflicts),
        texts,
        needs_cuda,
    )
    return _sort_leftovers(remove_invalid(project))


def _find_declared(files: Sequence[ImportedFile], groups: Collection[str]) -> frozenset[str]:
    """Return the names of the packages that somebody chose, according to the files."""
    return frozenset(
        package.name
        for file in files
        if file.format in _DECLARING and not file.is_resolved
        for package in file.packages
        if not package.is_constraint and package.environment in ("", *groups)
    )


def _without_imported(file: ImportedFile, files: Sequence[ImportedFile]) -> list[Leftover]:
    """Return the leftovers of a file without notes about files that are imported too."""
    others = {
        PurePosixPath(text.file)
        for other in files
        if other != file
        for text in other.texts.values()
    }
    kept = []
    for leftover in file.leftovers:
        missing = PurePosixPath(leftover.missing_file)
        pattern = missing.name if missing.is_absolute() else str(missing)
        if not pattern.strip(".") or not any(path.match(pattern) for path in others):
            kept.append(leftover)
    return kept


def _rename_indexes(file: ImportedFile, indexes: dict[str, str]) -> list[ImportedPackage]:
    """Return the packages of a file with names of indexes that mean one URL in all files."""
    names: dict[str | None, str | None] = {}
    for name, url in file.indexes.items():
        known = next((other for other, known in indexes.items() if known == url), None)
        new, number = known or name, 2
        while known is None and new in indexes:
            new, number = f"{name}-{number}", number + 1
        indexes[new] = url
        names[name] = new
    return [
        package
        if package.manager == "conda"
        else package._replace(index=names.get(package.index, package.index))
        for package in file.packages
    ]


def _select_groups(
    packages: Iterable[ImportedPackage], groups: Collection[str], leftovers: list[Leftover]
) -> list[ImportedPackage]:
    """Return the packages of the main group and of those that are named."""
    selected: list[ImportedPackage] = []
    others: dict[str, list[ImportedPackage]] = {}
    for package in packages:
        if not package.environment or package.environment in groups:
            selected.append(package)
        else:
            others.setdefault(package.environment, []).append(package)
    for name, members in others.items():
        leftovers.append(
            Leftover(
                members[0].span,
                f"the group {name} was left out: {list_names(members)}",
                "groups and extras are optional",
                f"use --group {name} to import it",
            )
        )
    return selected


def _reduce_resolved(
    packages: list[ImportedPackage],
    settings: list[Setting],
    leftovers: list[Leftover],
    declared: frozenset[str],
) -> tuple[list[ImportedPackage], list[ImportedPackage], bool]:
    """Return the chosen packages of a resolved set, those that only pin, and if it has CUDA.

    A file that says which packages were chosen (uv.lock) is reduced to them, and one next to a file
    that declares packages only pins these. In others all are taken, except those that belong to
    torch's CUDA build.
    """
    roots = [package for package in packages if not package.is_exact]
    of_cuda = [package for package in packages if CUDA_PACKAGES.match(package.name)]
    torch = next((package for package in packages if package.name == "torch"), None)
    if torch is not None and of_cuda:
        _set_cuda(torch, of_cuda, settings)
    is_rooted = bool(roots) and len(roots) < len(packages)
    if is_rooted:
        return roots, [package for package in packages if package.is_exact], bool(of_cuda)
    if declared and packages:
        _note_reduced(packages, declared, leftovers)
        return [], packages, bool(of_cuda)
    if torch is None or not of_cuda:
        return packages, [], False
    leftovers.append(
        Leftover(
            of_cuda[0].span,
            f"{list_names(of_cuda)}: left out",
            "they are part of torch's CUDA build, which the lock selects together with "
            "everything it requires",
        )
    )
    return [package for package in packages if package not in of_cuda], [], True


def _note_reduced(
    packages: list[ImportedPackage], declared: frozenset[str], leftovers: list[Leftover]
) -> None:
    """Add what a resolved set that only pins leaves out, and what it does not pin."""
    others = [package for package in packages if package.name not in declared]
    if others:
        leftovers.append(
            Leftover(
                others[0].span,
                f"{list_names(others)}: left out, because no other file lists them",
                "this file pins the packages that the other files list, and their dependencies",
                "import only this file to keep all of its lines",
            )
        )
    unpinned = sorted(declared - {package.name for package in packages})
    if unpinned:
        names = ", ".join(unpinned)
        leftovers.append(
            Leftover(
                packages[0].span, f"{names}: no exact version, because this file does not list them"
            )
        )


def _set_cuda(
    torch: ImportedPackage, of_cuda: list[ImportedPackage], settings: list[Setting]
) -> None:
    """Add the CUDA version of the build that nvidia-cuda-runtime belongs to, if torch has it."""
    release = load_facts().torch_release(torch.requirement.partition("==")[2].partition(" ")[0])
    for package in of_cuda:
        if not package.name.startswith(_CUDA_RUNTIME) or release is None:
            continue
        cuda = ".".join(package.requirement.partition("==")[2].split(".")[:2])
        if flavour_of(cuda) in release.builds:
            settings.append(Setting(("cuda",), cuda, package.span))


def _merge_settings(
    settings: Iterable[Setting],
) -> tuple[tuple[Setting, ...], tuple[Conflict, ...]]:
    """Return one setting per route; the first value is taken, and lists are joined."""
    merged: dict[Route, Setting] = {}
    conflicts = []
    system: dict[str, Setting] = {}
    for setting in settings:
        if setting.route[0] == "system_packages":
            system.setdefault(str(setting.value), setting)
            continue
        earlier = merged.setdefault(setting.route, setting)
        if earlier.value == setting.value:
            continue
        value = None
        if setting.route == ("python",):
            value = _narrow_python(earlier.value, setting.value)
        if value is None:
            conflicts.append(_setting_conflict(earlier, setting))
        else:
            span = setting.span if value == setting.value else earlier.span
            merged[setting.route] = Setting(("python",), value, span)
    joined = [
        setting._replace(route=("system_packages", number))
        for number, setting in enumerate(system.values())
    ]
    return (*merged.values(), *joined), tuple(conflicts)


def _narrow_python(earlier: str, later: str) -> str | None:
    """Return the Python that satisfies two versions or ranges; None for two versions."""
    ranges = [value for value in (earlier, later) if not value[:1].isdigit()]
    exact = [value for value in (earlier, later) if value[:1].isdigit()]
    try:
        specifiers = SpecifierSet(",".join(ranges))
    except InvalidSpecifier:
        return None
    if not exact:
        return ",".join(ranges)
    if len(exact) == 1 and any(specifiers.contains(f"{exact[0]}.{patch}") for patch in range(30)):
        return exact[0]
    return None


def _setting_conflict(earlier: Setting, later: Setting) -> Conflict:
    name = ".".join(map(str, earlier.route))
    message = f"{name} is set to both {earlier.value} and {later.value}"
    return Conflict(message, earlier.span, later.span)


def _sort_leftovers(project: ImportedProject) -> ImportedProject:
    """Return a project with its leftovers in the order of the texts."""
    order = {name: number for number, name in enumerate(project.texts)}

    def position(leftover: Leftover) -> tuple[int, int]:
        return order.get(leftover.span.file, len(order)), leftover.span.start.offset

    return project._replace(leftovers=tuple(sorted(project.leftovers, key=position)))
