"""What conda brings at the targets that ask for it, by the real uv and py-rattler over a channel on
disk.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from rattler.index import index_fs

from provision.adapters import RealSystem
from provision.effects import conda as effects
from provision.effects.conda import CondaMatchSpec, CondaSolveRequest
from provision.errors import NetworkError, Unsatisfiable
from provision.extras import install_command
from provision.facts import load_facts
from provision.lock import Lock, LockedEnvironment, dumps, loads
from provision.lock.diff import diff_locks
from provision.lock.inputs import list_changed_inputs
from provision.lock.resolve import resolve_spec
from provision.lock.spec_agreement import find_disagreements
from provision.spec import Spec
from provision.target_facts import find_unlockable
from tests.conda_rig import VERSION, CondaChannel, assemble
from tests.pytorch_rig import PyTorch
from tests.rig import MINOR, Bench

GOLDEN = Path(__file__).parents[1] / "golden/conda"
CONDA = {"kind": "local", "manager": "conda"}
L4 = {"gpu": "L4", "cuda": "12.6"}
TORCH = {"name": "torch", "version": "==2.13.0", "source": "conda"}


def spec(*packages: Any, targets: dict[str, Any] | None = None, **fields: Any) -> Spec:
    """A CPU spec, at one conda target unless told otherwise."""
    return Spec.model_validate(
        {
            "gpu": "none",
            "python": MINOR,
            "packages": list(packages),
            "targets": targets or {"local": CONDA},
            **fields,
        }
    )


@pytest.fixture
def machine(bench: Bench, conda: CondaChannel) -> RealSystem:
    """This machine with the bench's index and the rig's channel."""
    return RealSystem(bench.environment(**conda.variables()))


@pytest.fixture
def torch_machine(bench: Bench, conda: CondaChannel, pytorch: PyTorch) -> RealSystem:
    """This machine with the rig's PyTorch indexes and channel."""
    return RealSystem(bench.environment(**conda.variables(), **pytorch.offline()))


def locked(wanted: Spec, machine: RealSystem, keep: Lock | None = None) -> Lock:
    lock = resolve_spec(wanted, load_facts(), machine, lambda _: None, keep=keep)
    assert find_disagreements(lock, wanted, load_facts()) == ()
    return lock


def at(lock: Lock, target: str = "local", platform: str = "linux-x86_64") -> LockedEnvironment:
    environment = lock.environment(target, platform)
    assert environment is not None
    return environment


def brought(lock: Lock, target: str = "local", platform: str = "linux-x86_64") -> dict[str, str]:
    """What conda brings to a target, as name and "version build"."""
    return {
        package.name: f"{package.version} {package.build}"
        for package in lock.conda_records_in(at(lock, target, platform))
    }


def test_conda_brings_python_and_what_is_asked_of_it(
    machine: RealSystem, conda: CondaChannel
) -> None:
    lock = locked(spec("beta", conda_packages=["ffmpeg=6", "gxx"]), machine)
    assert brought(lock).keys() == {"python", "pip", "ffmpeg", "gxx"}
    assert (brought(lock)["python"], brought(lock)["ffmpeg"]) == (
        f"{VERSION} h0_cpython",
        "6.1.2 h0_gpl",
    )
    assert lock.versions(at(lock)) == {"alpha": "1.0", "beta": "1.0"}
    python = next(package.record for package in lock.conda if package.record.name == "python")
    assert (python.channel, python.subdir, python.file) == (
        "conda-forge",
        "linux-64",
        f"python-{VERSION}-h0_cpython.conda",
    )
    assert len(bytes.fromhex(python.sha256)) == 32


def test_the_lock_is_read_back_and_is_the_same_bytes_again(
    machine: RealSystem, conda: CondaChannel
) -> None:
    wanted = spec("beta", conda_packages=["ffmpeg"])
    lock = locked(wanted, machine)
    assert loads(dumps(lock), "x.lock") == lock
    assert (
        dumps(locked(wanted, machine)) == dumps(locked(wanted, machine, keep=lock)) == dumps(lock)
    )
    assert list_changed_inputs(wanted, lock) == ()
    assert conda.address not in dumps(lock)
    assert "://" not in dumps(lock)


def test_a_lock_is_exactly_this(bench: Bench, conda: CondaChannel, pytorch: PyTorch) -> None:
    """But for the hashes and the Python and pip that the rig packs, which are those of the machine
    that made its channel.
    """
    bench.spec((GOLDEN / "spec.yaml").read_text())
    done = bench.run("lock", "spec.yaml", **conda.variables(), **pytorch.offline())
    assert done.returncode == 0, done.stderr
    made = re.sub(
        r'("(?:sha256|md5)": |"(?:digest|written)": "sha256:|\.whl": )"?[0-9a-f]{32,64}"?',
        r'\1"-"',
        (bench.folder / "spec.lock").read_text(),
    )
    made = re.sub(r"\b(3\.12\.\d+|2\d\.\d(\.\d)?)(?=[-\"])", "0", made)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        (GOLDEN / "normalised.lock").write_text(made)
    assert made == (GOLDEN / "normalised.lock").read_text()


def test_a_lock_without_conda_is_as_it_was(machine: RealSystem) -> None:
    lock = locked(spec("beta", targets={"local": {"kind": "local"}}), machine)
    assert lock.conda == ()
    assert '"conda"' not in dumps(lock)


def test_targets_share_the_versions_of_the_index(machine: RealSystem) -> None:
    lock = locked(spec("beta", targets={"conda": CONDA, "uv": {"kind": "local"}}), machine)
    assert lock.versions(at(lock, "conda")) == lock.versions(at(lock, "uv"))
    assert (at(lock, "conda").key, at(lock, "uv").key) == ("linux-x86_64-conda", "linux-x86_64")
    assert brought(lock, "uv") == {}
    assert at(lock, "conda").digest != at(lock, "uv").digest


def test_what_conda_brings_decides_the_digest(machine: RealSystem) -> None:
    older, newer = (
        at(locked(spec("beta", conda_packages=[f"ffmpeg={version}"]), machine))
        for version in ("6", "7")
    )
    assert older.digest != newer.digest


def test_a_python_package_that_conda_brings_too_has_the_version_of_the_lock(
    machine: RealSystem,
) -> None:
    lock = locked(
        spec(
            "beta",
            conda_packages=["needs-alpha"],
            targets={"conda": CONDA, "uv": {"kind": "local"}},
        ),
        machine,
    )
    assert (
        brought(lock, "conda")["alpha"].split()[0]
        == lock.versions(at(lock, "uv"))["alpha"]
        == "1.0"
    )
    assert lock.versions(at(lock, "conda")) == {"beta": "1.0"}


def test_versions_that_do_not_go_together_are_both_named(machine: RealSystem) -> None:
    with pytest.raises(Unsatisfiable) as caught:
        locked(
            spec("gamma", conda_packages=["needs-alpha", {"name": "alpha", "version": "1.*"}]),
            machine,
        )
    assert (
        "alpha must have the same version on all targets, but conda alone would choose 1.0"
        in caught.value.why
    )


@pytest.mark.parametrize(
    ("fields", "build", "cuda"), [({}, "cpu_", None), (L4, "cuda126_", "12.6")]
)
def test_torch_from_conda_has_the_version_and_the_build_of_its_target(
    torch_machine: RealSystem, fields: Any, build: str, cuda: str | None
) -> None:
    lock = locked(
        spec(TORCH, targets={"conda": CONDA, "uv": {"kind": "local"}}, **fields), torch_machine
    )
    version, _, found = brought(lock, "conda")["pytorch"].partition(" ")
    assert (version, found.startswith(build)) == ("2.13.0", True)
    assert brought(lock, "conda").get("cuda-version", "").partition(" ")[0] == (cuda or "")
    assert lock.versions(at(lock, "uv"))["torch"].startswith("2.13.0+")
    assert not lock.versions(at(lock, "conda")).keys() & {
        "torch",
        "triton",
        "sympy",
    }  # what only torch of the index needs is left out with it


def test_the_name_that_conda_has_for_torch_is_understood(torch_machine: RealSystem) -> None:
    wanted = spec({**TORCH, "name": "pytorch"})
    lock = locked(wanted, torch_machine)
    assert "pytorch" in brought(lock)
    assert list_changed_inputs(wanted, lock) == ()


def test_torch_stays_when_something_else_moves(torch_machine: RealSystem) -> None:
    lock = locked(spec(TORCH), torch_machine)
    again = locked(
        spec({"name": "torch", "source": "conda"}, conda_packages=["ffmpeg"]),
        torch_machine,
        keep=lock,
    )
    assert brought(again)["pytorch"] == brought(lock)["pytorch"]


def test_a_build_that_the_channel_lacks_is_an_error_and_not_one_for_cpu(
    torch_machine: RealSystem,
) -> None:
    with pytest.raises(Unsatisfiable) as caught:
        locked(spec({**TORCH, "version": "==2.12.0"}, **L4), torch_machine)
    assert (
        caught.value.what
        == "channel conda-forge has no build cuda126* of pytorch ==2.12.0 for linux-x86_64"
    )
    assert "available builds for that version: cpu_generic" in caught.value.why
    assert "set `cuda`" in caught.value.hint


def test_what_is_not_there_is_named_with_what_is(machine: RealSystem) -> None:
    with pytest.raises(
        Unsatisfiable, match="channel conda-forge has no package nosuch for linux-x86_64"
    ):
        locked(spec("beta", conda_packages=["nosuch"]), machine)
    with pytest.raises(Unsatisfiable, match="channel conda-forge has no ffmpeg 9") as caught:
        locked(spec("beta", conda_packages=["ffmpeg=9"]), machine)
    assert caught.value.why.startswith("available versions: 6.1.2, 7.1.1")


def test_a_package_for_cuda_without_a_card_says_what_is_missing(machine: RealSystem) -> None:
    with pytest.raises(
        Unsatisfiable, match="no set of conda packages satisfies the spec on linux-x86_64"
    ) as caught:
        locked(spec("beta", conda_packages=["only-cuda"]), machine)
    assert "__cuda" in caught.value.why
    assert "set `gpu` and `cuda`" in caught.value.hint


def test_a_newer_c_library_than_planned_for_is_an_error(machine: RealSystem) -> None:
    with pytest.raises(Unsatisfiable) as caught:
        locked(spec("beta", conda_packages=[{"name": "newest-libc"}]), machine)
    assert "__glibc >=2.99" in caught.value.why
    assert caught.value.why.startswith("newest-libc of conda-forge cannot be installed"), (
        "a channel by its name, not by a mirror's address"
    )
    assert (
        "this target has __glibc 2.28; no __cuda, because no GPU or no CUDA is requested"
        in caught.value.why
    )
    assert "needs a newer C library" in caught.value.hint


def test_the_cuda_of_the_target_counts_and_not_that_of_this_machine(
    machine: RealSystem, torch_machine: RealSystem
) -> None:
    wish = CondaMatchSpec("pytorch", "==2.13.0", "cuda130*", "conda-forge")
    ask = CondaSolveRequest(
        "linux-x86_64",
        (effects.CondaChannel("conda-forge"),),
        (wish,),
        (("__glibc", "2.28"), ("__cuda", "13.0")),
    )
    assert {record.name for record in machine.solve_conda(ask, lambda _: None)} == {
        "pytorch",
        "python",
        "cuda-version",
    }
    without = ask._replace(virtual_packages=(("__glibc", "2.28"),))
    with pytest.raises(
        Unsatisfiable, match="no set of conda packages satisfies the spec on linux-x86_64"
    ) as caught:
        machine.solve_conda(without, lambda _: None)
    assert "__cuda" in caught.value.why
    with pytest.raises(Unsatisfiable) as caught:
        locked(spec("filelock", conda_packages=["cuda-version=13.0"], **L4), torch_machine)
    assert "cuda-version must be 12.6, the CUDA version of this target's wheels" in caught.value.why
    assert "set `cuda`" in caught.value.hint


def test_every_platform_gets_records_of_its_own(machine: RealSystem) -> None:
    lock = locked(
        spec("beta", conda_packages=["ffmpeg"], platforms=["linux-x86_64", "macos-arm64"]), machine
    )
    subdirs = {
        package.subdir for package in lock.conda_records_in(at(lock, platform="macos-arm64"))
    }
    assert subdirs == {"osx-arm64", "noarch"}
    shared = next(package for package in lock.conda if package.record.name == "pip")
    assert shared.environments == ("linux-x86_64-conda", "macos-arm64-conda")


def test_a_private_channel_is_named_under_indexes(
    machine: RealSystem, bench: Bench, tmp_path: Path
) -> None:
    import asyncio

    own = tmp_path / "own"
    assemble(own, "ours", "1.0")
    (own / "noarch").mkdir()
    asyncio.run(index_fs(own, write_zst=False, write_shards=False))
    fields: dict[str, Any] = {
        "conda_packages": [{"name": "ours", "channel": "lab"}],
        "indexes": {"lab": {"url": "https://conda.example.com/lab"}},
    }
    lock = locked(
        spec("beta", **fields),
        RealSystem({**machine.environment(), "PROVISION_CHANNEL_LAB": own.as_uri()}),
    )
    assert (
        next(package.record for package in lock.conda if package.record.name == "ours").channel
        == "lab"
    )
    assert lock.indexes == {"lab": "https://conda.example.com/lab"}
    assert own.as_uri() not in dumps(lock)
    moved = spec(
        "beta", **{**fields, "indexes": {"lab": {"url": "https://elsewhere.example.com/lab"}}}
    )
    assert list_changed_inputs(moved, lock) != ()


def test_a_channel_out_of_reach_is_named_with_its_variable(bench: Bench) -> None:
    machine = RealSystem(
        bench.environment(PROVISION_CHANNEL_CONDA_FORGE="http://someone:secret@127.0.0.1:9/channel")
    )
    with pytest.raises(NetworkError, match="conda channel conda-forge cannot be reached") as caught:
        locked(spec("beta"), machine)
    assert "PROVISION_CHANNEL_CONDA_FORGE" in caught.value.hint
    assert "secret" not in caught.value.why + caught.value.what


def test_without_the_extra_one_line_says_what_installs_it(
    bench: Bench, conda: CondaChannel
) -> None:
    bench.spec(
        f'gpu: none\npython: "{MINOR}"\npackages: [beta]\ntargets: {{local: {{kind: local, '
        f"manager: conda}}}}\n"
    )
    hide = bench.folder / "hide"
    hide.mkdir()
    (hide / "rattler.py").write_text("raise ImportError('hidden', name='rattler')")
    done = bench.run("lock", "spec.yaml", PYTHONPATH=str(hide), **conda.variables())
    assert done.returncode == 2, done.stderr
    assert install_command("conda") in done.stderr


def test_nodefaults_is_no_channel() -> None:
    with pytest.raises(ValueError, match="nodefaults is not a channel; name the package's channel"):
        spec("beta", conda_packages=["nodefaults::ffmpeg"])


def test_conda_packages_without_a_conda_target_are_refused() -> None:
    wanted = spec(
        "beta",
        {"name": "alpha", "source": "conda"},
        targets={"local": {"kind": "local"}},
        conda_packages=["ffmpeg"],
    )
    assert [refusal.route for refusal in find_unlockable(wanted)] == [
        ("packages", 1),
        ("conda_packages",),
    ]


def test_what_is_dropped_from_the_spec_makes_the_lock_stale(machine: RealSystem) -> None:
    lock = locked(spec("beta", conda_packages=["ffmpeg"]), machine)
    assert list_changed_inputs(spec("beta"), lock) == ("conda_packages: - ffmpeg from conda-forge",)
    assert list_changed_inputs(spec("beta", conda_packages=["ffmpeg", "gxx"]), lock) == (
        "conda_packages: + gxx from conda-forge",
    )


def test_what_conda_brings_is_compared_too(machine: RealSystem) -> None:
    older, newer = (
        locked(spec("beta", conda_packages=words), machine)
        for words in (["ffmpeg=6"], ["ffmpeg=7", "gxx"])
    )
    changes = {
        change.name: (change.old, change.new) for change in diff_locks(older, newer).packages
    }
    assert changes.keys() == {"ffmpeg (conda)", "gxx (conda)"}
    old, new = changes["ffmpeg (conda)"]
    assert old is not None
    assert new is not None
    assert (old.version, new.version, new.index) == ("6.1.2 h0_gpl", "7.1.1 h0_gpl", "conda-forge")
    assert diff_locks(older, older).is_empty


def test_one_package_of_conda_is_upgraded_by_name(bench: Bench, conda: CondaChannel) -> None:
    bench.extra = conda.variables()
    text = (
        f'gpu: none\npython: "{MINOR}"\npackages: [beta]\nconda_packages: '
        f'["ffmpeg{{}}"]\ntraining: {{{{framework: none}}}}\n'
    )
    text += "targets: {{local: {{kind: local, manager: conda}}}}\n"
    bench.spec(text.format("=6"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    bench.spec(text.format(">=6"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "ffmpeg-6.1.2-" in (bench.folder / "spec.lock").read_text()  # it stays while it fits
    done = bench.run("lock", "spec.yaml", "--upgrade", "ffmpeg")
    assert done.returncode == 0, done.stderr
    assert "ffmpeg-7.1.1-" in (bench.folder / "spec.lock").read_text()


def test_what_is_said_on_a_terminal(bench: Bench, conda: CondaChannel) -> None:
    bench.spec(
        f'gpu: none\npython: "{MINOR}"\npackages: [beta]\nconda_packages: '
        f"[ffmpeg=9]\ntargets: {{local: {{kind: local, manager: conda}}}}\n"
    )
    done = bench.run("lock", "spec.yaml", **conda.variables())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-3:] == [
        "error: channel conda-forge has no ffmpeg 9.* for linux-x86_64",
        "  why: available versions: 6.1.2, 7.1.1",
        "  help: relax the versions of these packages in `conda_packages`",
    ]
    assert "searching for a change that resolves" not in done.stderr
