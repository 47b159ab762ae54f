"""Bounds that a lock adds for releases that do not work together, by the real uv."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.effects.system import Notice
from provision.facts import Evidence, Facts, load_facts
from provision.facts.schema_packages import UndeclaredRequirement
from provision.facts.schema_windows import ReadReleases, ReleaseWindow
from provision.lock import Lock, dumps, loads
from provision.lock.inputs import list_changed_inputs
from provision.lock.resolve import resolve_spec
from provision.lock.spec_agreement import find_disagreements
from provision.lock.window_bounds import WindowBound, propose_bounds
from provision.spec import Spec
from tests.rig import MINOR, Bench, make_index, make_wheel

EVIDENCE = Evidence("both wheels", "2026-11-27", "medium")


def window(first: str, specifier: str, severity: str = "error", last: str = "") -> ReleaseWindow:
    """Releases of delta from `first` on use a name that some releases of epsilon have."""
    key = f"delta-{first}-epsilon"
    return ReleaseWindow(
        key, "delta", first, last, "epsilon", specifier, "epsilon.x", severity, "", "", EVIDENCE
    )


def facts_with(*windows: ReleaseWindow) -> Facts:
    """The facts with these windows alone."""
    read = {"delta": ReadReleases("delta", True, ("1.0", "2.0"), EVIDENCE)}
    return load_facts().with_tables(windows=windows, windows_read=read)


def need(first: str, last: str, specifier: str, **more: str) -> UndeclaredRequirement:
    """Releases of delta that require some releases of epsilon without declaring it."""
    severity = more.get("severity", "error")
    evidence = EVIDENCE._replace(confidence=more.get("confidence", "medium"))
    return UndeclaredRequirement(
        "delta", first, last, "epsilon", specifier, "delta fails", severity, evidence
    )


def facts_that_need(*needs: UndeclaredRequirement) -> Facts:
    """The facts without windows, with these requirements alone."""
    return facts_with().with_tables(undeclared=needs)


def locked(
    bench: Bench, folder: Path, facts: Facts, *packages: str, notices: list[str] | None = None
) -> Lock:
    """Resolve with delta 1.0 and 2.0, epsilon 1.0 and 2.0, and zeta, which needs epsilon 2."""
    wheels = [
        make_wheel(folder / "wheels", name, version)
        for name in ("delta", "epsilon")
        for version in ("1.0", "2.0")
    ]
    zeta = make_wheel(folder / "wheels", "zeta", "1.0", requires=("epsilon>=2",))
    make_index(folder / "index", (*wheels, zeta))
    spec = spec_of(*packages)
    said: list[str] = notices if notices is not None else []

    def progress(event: object) -> None:
        if isinstance(event, Notice):
            said.append(str(event))

    lock = resolve_spec(spec, facts, RealSystem(bench.environment()), progress)
    assert find_disagreements(lock, spec, facts) == ()
    assert loads(dumps(lock), "x.lock") == lock
    return lock


def spec_of(*packages: str) -> Spec:
    """A spec with those packages."""
    return Spec.model_validate(
        {
            "gpu": "none",
            "python": MINOR,
            "packages": list(packages),
            "training": {"framework": "none"},
        }
    )


def versions(lock: Lock) -> dict[str, str]:
    """The locked versions."""
    return {package.name: package.version for package in lock.packages}


CEILING = window("2.0", "<2.0")


@pytest.mark.long(after=6)
@pytest.mark.parametrize(
    ("windows", "packages", "expected", "bounds"),
    [
        ((), ("delta", "epsilon"), ("2.0", "2.0"), ()),
        ((CEILING,), ("delta", "epsilon"), ("2.0", "1.0"), (("epsilon", "<2.0"),)),
        ((CEILING,), ("delta", "epsilon==2.0"), ("1.0", "2.0"), (("delta", "<2.0"),)),
        ((CEILING,), ("delta==2.0", "epsilon"), ("2.0", "1.0"), (("epsilon", "<2.0"),)),
        ((CEILING,), ("delta==2.0", "epsilon==2.0"), ("2.0", "2.0"), ()),
        ((CEILING,), ("delta", "zeta"), ("1.0", "2.0"), (("delta", "<2.0"),)),
        ((CEILING,), ("delta==2.0", "zeta"), ("2.0", "2.0"), ()),
        ((window("2.0", "<2.0", "warning"),), ("delta", "epsilon"), ("2.0", "2.0"), ()),
        ((window("1.0", ">=2.0"),), ("delta", "epsilon==1.0"), ("2.0", "1.0"), ()),
        ((window("2.0", ">=2.0"),), ("delta", "epsilon<2"), ("1.0", "1.0"), (("delta", "<2.0"),)),
        (
            (CEILING, window("1.0", "<1.5", last="1.0")),
            ("delta<2", "epsilon"),
            ("1.0", "1.0"),
            (("epsilon", "<1.5"),),
        ),
    ],
)
def test_bounds_are_added_on_the_side_that_is_not_pinned(
    bench: Bench,
    tmp_path: Path,
    windows: tuple[ReleaseWindow, ...],
    packages: tuple[str, ...],
    expected: tuple[str, str],
    bounds: tuple[tuple[str, str], ...],
) -> None:
    lock = locked(bench, tmp_path, facts_with(*windows), *packages)
    found = versions(lock)
    assert (found["delta"], found["epsilon"]) == expected
    assert tuple((bound.package, bound.specifier) for bound in lock.bounds) == bounds


@pytest.mark.long(after=4)
@pytest.mark.parametrize(
    ("needs", "packages", "expected", "bounds"),
    [
        ((need("2.0", "", "<2"),), ("delta", "epsilon"), ("2.0", "1.0"), (("epsilon", "<2"),)),
        ((need("", "1.0", "<2"),), ("delta<2", "zeta"), ("1.0", "2.0"), ()),
        ((need("2.0", "", "<2"),), ("delta", "zeta"), ("1.0", "2.0"), (("delta", "<2.0"),)),
        ((need("1.5", "", "=="),), ("delta", "epsilon<2"), ("1.0", "1.0"), (("delta", "<1.5"),)),
        ((need("2.0", "", "<2"),), ("delta==2.0", "epsilon==2.0"), ("2.0", "2.0"), ()),
        ((need("2.0", "", "<2", severity="warning"),), ("delta", "epsilon"), ("2.0", "2.0"), ()),
        ((need("2.0", "", "<2", confidence="low"),), ("delta", "epsilon"), ("2.0", "2.0"), ()),
    ],
)
def test_undeclared_requirements_are_met_by_bounds(
    bench: Bench,
    tmp_path: Path,
    needs: tuple[UndeclaredRequirement, ...],
    packages: tuple[str, ...],
    expected: tuple[str, str],
    bounds: tuple[tuple[str, str], ...],
) -> None:
    lock = locked(bench, tmp_path, facts_that_need(*needs), *packages)
    found = versions(lock)
    assert (found["delta"], found["epsilon"]) == expected
    assert tuple((bound.package, bound.specifier) for bound in lock.bounds) == bounds


def test_code_for_old_protobuf_needs_no_bound_with_the_slower_implementation() -> None:
    facts = load_facts()
    chosen = {"tensorboard": "2.8.0", "protobuf": "4.21.0"}
    spec = spec_of("tensorboard==2.8.0", "protobuf")
    assert [bound.requirement for bound in propose_bounds(spec, facts, chosen)][:1] == [
        "protobuf<4"
    ]
    env = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    assert list(propose_bounds(spec.model_copy(update={"env": env}), facts, chosen)) == []


def test_a_bound_is_recorded_and_reported_with_its_window(bench: Bench, tmp_path: Path) -> None:
    notices: list[str] = []
    lock = locked(bench, tmp_path, facts_with(CEILING), "delta", "epsilon", notices=notices)
    assert lock.bounds == (WindowBound("epsilon", "<2.0", "delta-2.0-epsilon"),)
    assert '"bounds": [\n    {"package": "epsilon", "specifier": "<2.0", "window": "delta' in dumps(
        lock
    )
    assert notices[-1:] == [
        "added the bound epsilon<2.0, because of the known incompatibility delta-2.0-epsilon"
    ]


def test_a_new_window_does_not_make_a_lock_stale(bench: Bench, tmp_path: Path) -> None:
    lock = locked(bench, tmp_path, facts_with(), "delta", "epsilon")
    assert '"bounds"' not in dumps(lock)
    assert list_changed_inputs(spec_of("delta", "epsilon"), lock) == ()
    assert find_disagreements(lock, spec_of("delta", "epsilon"), facts_with(CEILING)) == ()


@pytest.mark.long
def test_at_most_twenty_bounds_are_tried(bench: Bench, tmp_path: Path) -> None:
    windows = [
        window("2.0", "<2.0")._replace(id=f"w{number}", specifier=f"<1.{number}")
        for number in range(1, 40)
    ]
    lock = locked(bench, tmp_path, facts_with(*windows), "delta==2.0", "zeta")
    assert versions(lock) == {"delta": "2.0", "epsilon": "2.0", "zeta": "1.0"}
    assert lock.bounds == ()
