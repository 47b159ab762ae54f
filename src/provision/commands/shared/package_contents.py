"""The content of locked packages from paths and repositories, as it is when a target is planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.package_origins import list_left_out
from provision.effects.code import CodeProblem
from provision.effects.system import ProgressCallback, Reader, System
from provision.effects.wheels import PackageSource
from provision.errors import BuildRequirementsError, ExternalError
from provision.kinds.base import Refusal
from provision.lock import Lock, LockedEnvironment, LockedPackage
from provision.targets import TargetContext, find_driver

_MAX_WHEEL_BYTES = 2 * 2**30


def read_package_contents(
    loaded: LoadedSpec,
    lock: Lock,
    environment: LockedEnvironment | None,
    reader: Reader,
    *,
    elsewhere: bool,
) -> tuple[PackageSource, ...]:
    """Return the packages of an environment that are not from an index. May block for a second.

    What cannot be used is among their problems. A target on another machine (`elsewhere`) gets the
    wheels of the packages, also of editable ones.
    """
    if environment is None:
        return ()
    sources = []
    for package in lock.packages_in(environment):
        if package.origin is not None:
            source = _read_content(package, loaded, reader)
            if elsewhere and not source.problems:
                wheel = reader.find_wheel(source, lock.python)
                source = replace(source, editable=False, wheel=wheel)
            sources.append(source)
    return tuple(sources)


def build_wheels(
    loaded: LoadedSpec,
    lock: Lock,
    names: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
) -> None:
    """Build the wheels that some targets get on another machine; each once, into the user's cache.

    Raises:
        LockError: the version of a package is not the locked one.
        Refused: a package is compiled.
        BuildRequirementsError: what builds a package cannot be installed on this machine.
        ExternalError: a package cannot be built.
    """
    for name in names:
        driver = find_driver(loaded.spec, name)
        if driver is None or driver.platform is None:
            continue
        environment = lock.environment(name, driver.platform)
        for source in read_package_contents(loaded, lock, environment, system, elsewhere=True):
            if source.problems:
                continue
            try:
                system.build_wheel(source, lock.python, progress)
            except BuildRequirementsError as error:
                platforms = sorted({locked.platform for locked in lock.environments})
                if system.platform() in platforms or not source.build:
                    raise
                lines = [package.key for package in loaded.spec.packages]
                listed = " and ".join(platforms)
                raise BuildRequirementsError(
                    f"{loaded.position('packages', lines.index(source.name))}: {error.what} on "
                    "this machine",
                    why=f"its build requirements are locked for {listed}, and this machine is "
                    f"{system.platform()}\n{error.why}",
                    hint=f"build its wheel yourself, or on a machine with {listed}, and list that "
                    "file in `packages` in place of its source",
                ) from error


def find_package_refusals(context: TargetContext) -> Iterator[Refusal]:
    """Yield why packages from paths cannot be used."""
    names = [package.key for package in context.spec.packages]
    for source in context.sources:
        number = names.index(source.name) if source.name in names else 0
        for problem in source.problems:
            why = f"{source.name}: {problem.why}"
            yield Refusal(("packages", number), why, problem.hint)


def _read_content(package: LockedPackage, loaded: LoadedSpec, reader: Reader) -> PackageSource:
    origin = package.origin
    assert origin is not None  # noqa: S101
    if origin.git:
        return PackageSource(
            package.name,
            origin.commit,
            git=origin.git,
            commit=origin.commit,
            subdirectory=origin.subdirectory,
            build=origin.build,
            version=package.version,
        )
    root = loaded.source.root
    path = root / origin.path
    if origin.is_wheel:
        problems: tuple[CodeProblem, ...] = ()
        try:
            reader.read(path, _MAX_WHEEL_BYTES)
        except ExternalError as error:
            problems = (CodeProblem(error.what, "build the wheel again, or correct its path"),)
        digest = package.files[0].sha256
        return PackageSource(
            package.name, digest, path, root, version=package.version, problems=problems
        )
    exclude = list_left_out(loaded, path, reader)
    tree = reader.code().read_package(path, root, exclude)
    return PackageSource(
        package.name,
        tree.digest,
        path,
        root,
        exclude,
        origin.editable,
        build=origin.build,
        version=package.version,
        problems=tree.problems,
        files=tree.manifest.files,
        untracked=tree.untracked,
    )
