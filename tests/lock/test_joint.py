"""One resolution for targets with different builds of torch, by the real uv over the rig of PyTorch's indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provision.diagnostics import Severity
from provision.errors import LockError
from provision.facts import load
from provision.lock import Lock, dumps, loads
from provision.lock.flavours import Proposal, admitted, proposals
from provision.lock.resolve import resolve
from provision.rules import Case, Resolved, judge
from provision.rules.suggest import Unwritten
from provision.spec import Spec
from provision.world import Machine
from tests.pytorch_rig import PyTorch
from tests.rig import Bench, make_index, make_wheel

COLAB = {"kind": "colab", "runtime": "2026.07", "gpu": "T4"}
WORKBENCH = {"kind": "workbench", "project": "p", "zones": ["us-central1-a"], "gpu": "L4", "image": "workbench-instances-2603-20261004-2157-rc0"}
LAPTOP = {"kind": "local"}


def spec(*packages: str, targets: dict[str, Any], **fields: object) -> Spec:
    """A CPU spec with those targets for Python 3.12."""
    return Spec.model_validate({"gpu": "none", "python": "3.12", "packages": list(packages), "targets": targets, **fields})


def locked(bench: Bench, rig: PyTorch, wanted: Spec, keep: Lock | None = None, **variables: str) -> Lock:
    """Resolve with the real uv and nothing but the rig."""
    return resolve(wanted, load(), Machine(bench.environment(**{**rig.offline(), **variables})), lambda _: None, keep=keep)


def held(lock: Lock, target: str, platform: str = "linux-x86_64") -> dict[str, str]:
    environment = lock.environment(target, platform)
    assert environment is not None
    return lock.versions(environment)


def test_targets_share_every_version_but_the_build_of_torch(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(bench, pytorch, spec("torch>=2.10", targets={"laptop": LAPTOP, "colab": COLAB, "workbench": WORKBENCH}))
    laptop, colab, workbench = (held(lock, name) for name in ("laptop", "colab", "workbench"))
    assert (laptop["torch"], colab["torch"], workbench["torch"]) == ("2.11.0+cpu", "2.11.0+cu128", "2.11.0+cu128")
    assert not any(name.startswith(("nvidia-", "triton")) for name in laptop)
    assert "triton" in colab
    shared = laptop.keys() & colab.keys() - {"torch"}
    assert {name: laptop[name] for name in shared} == {name: colab[name] for name in shared}
    assert lock.indexes == {f"pytorch-{name}": f"https://download.pytorch.org/whl/{name}" for name in ("cpu", "cu128")}


def test_every_choice_is_named_with_its_reason(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(bench, pytorch, spec("torch>=2.10", targets={"laptop": LAPTOP, "colab": COLAB, "workbench": WORKBENCH}))
    reasons = {name: chosen.because for name, chosen in lock.targets.items()}
    assert reasons["laptop"] == "cpu: the spec says gpu: none"
    assert reasons["colab"].startswith("cu128: what Colab runtime 2026.07 brings with torch 2.11.0; it covers T4 (sm_75) and runs on driver 580.82.07")
    assert reasons["workbench"].startswith("cu128: as at target colab; it covers L4 (sm_89) and runs on driver 580.")
    assert [(e.key, e.driver) for e in lock.environments] == [("linux-x86_64-cpu", None), ("linux-x86_64-cu128", "525.60.13")]


def test_a_lock_of_several_builds_is_read_back_and_is_the_same_bytes_again(bench: Bench, pytorch: PyTorch) -> None:
    wanted = spec("torch>=2.10", targets={"laptop": LAPTOP, "colab": COLAB})
    lock = locked(bench, pytorch, wanted)
    assert loads(dumps(lock), "x.lock") == lock
    assert dumps(locked(bench, pytorch, wanted)) == dumps(lock)
    assert dumps(locked(bench, pytorch, wanted, keep=lock)) == dumps(lock)


def test_where_no_runtime_brings_one_it_is_the_newest_that_runs(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(bench, pytorch, spec("torch<2.12.1", targets={"workbench": WORKBENCH}))
    assert held(lock, "workbench")["torch"] == "2.12.0+cu130"
    assert "the newest build of torch 2.12.0 that is sure to be there; it covers L4 (sm_89)" in lock.targets["workbench"].because


def test_an_unknown_driver_gets_the_build_that_asks_least_of_it(bench: Bench, pytorch: PyTorch) -> None:
    here = {"kind": "local", "gpu": "L4"}
    lock = locked(bench, pytorch, spec("torch==2.12.0", targets={"here": here}))
    assert held(lock, "here")["torch"] == "2.12.0+cu126"
    assert "the driver there is not known, and no build of torch 2.12.0 asks for an older one; it covers L4 (sm_89)" in lock.targets["here"].because
    known = locked(bench, pytorch, spec("torch==2.12.0", targets={"here": {**here, "requires": {"driver": ">=580"}}}))
    assert held(known, "here")["torch"] == "2.12.0+cu130"


def test_cards_that_no_build_has_in_common_get_one_each(bench: Bench, pytorch: PyTorch) -> None:
    """V100 left the builds of CUDA 13, B200 came with them; each set is judged for its own target only."""
    bench.spec(
        'gpu: V100\npython: "3.12"\npackages: [torch==2.12.0]\ntraining: {framework: torch}\n'
        "targets:\n  old: {kind: local}\n  new: {kind: local, gpu: B200, requires: {driver: '>=580'}}\n"
    )
    done = bench.run("lock", "spec.yaml", **pytorch.offline())
    assert done.returncode == 0, done.stderr
    lock = loads((bench.folder / "spec.lock").read_text(), "spec.lock")
    assert held(lock, "old")["torch"] == "2.12.0+cu126"
    assert held(lock, "new")["torch"] == "2.12.0+cu130"


def test_torch_is_the_newest_that_every_target_has_a_build_of(bench: Bench, pytorch: PyTorch) -> None:
    """cu128 ends with torch 2.11.0; the CPU target alone would get 2.13.0."""
    lock = locked(bench, pytorch, spec("torch", targets={"laptop": LAPTOP, "old": {"kind": "local", "gpu": "T4", "cuda": "12.8"}}))
    assert held(lock, "laptop")["torch"] == "2.11.0+cpu"
    assert held(lock, "old")["torch"] == "2.11.0+cu128"
    assert lock.targets["old"].because == "cu128: target old says cuda: 12.8"


def test_a_package_that_needs_another_torch_moves_it_for_all(bench: Bench, pytorch: PyTorch, tmp_path: Path) -> None:
    more = beside(pytorch, tmp_path, make_wheel(tmp_path / "w", "needy", "1.0", requires=("torch<2.11",)))
    lock = locked(bench, pytorch, spec("needy", "torch", targets={"laptop": LAPTOP, "colab": COLAB}), **more)
    assert held(lock, "laptop")["torch"] == "2.10.0+cpu"
    assert held(lock, "colab")["torch"].startswith("2.10.0+cu")
    assert lock.targets["colab"].changed["torch"] == "2.11.0+cu128"


def test_what_is_on_the_runtime_stays_and_the_rest_is_told(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(bench, pytorch, spec("torch", "numpy", targets={"colab": COLAB}))
    on_top = lock.targets["colab"]
    assert (on_top.runtime, on_top.restart, dict(on_top.changed)) == ("2026.07", (), {})
    assert {"torch", "numpy"} <= set(on_top.kept)
    newer = locked(bench, pytorch, spec("torch", "numpy>2.0.2", targets={"colab": COLAB}))
    assert newer.targets["colab"].restart == ("numpy",)
    assert newer.targets["colab"].changed["numpy"] == "2.0.2"
    assert "numpy" not in newer.targets["colab"].kept


def test_an_environment_of_its_own_takes_nothing_from_the_runtime(bench: Bench, pytorch: PyTorch) -> None:
    alone = locked(bench, pytorch, spec("torch<2.12.1", "numpy", targets={"colab": {**COLAB, "isolation": "venv"}}))
    assert alone.targets["colab"].runtime is None
    assert held(alone, "colab")["torch"].startswith("2.12.0+cu")


def test_a_change_of_what_the_kernel_runs_on_is_an_error_of_the_resolved_set(bench: Bench, pytorch: PyTorch, tmp_path: Path) -> None:
    wheels = make_wheel(tmp_path / "w", "needy", "1.0", requires=("tornado>6.5.7",)), make_wheel(tmp_path / "w", "tornado", "6.6")
    wanted = spec("needy", targets={"colab": COLAB})
    lock = locked(bench, pytorch, wanted, **beside(pytorch, tmp_path, *wheels))
    found = judge(Case(wanted, Unwritten(), load(), Resolved(held(lock, "colab"), "3.12")))
    assert [one.id for one in found if one.severity is Severity.ERROR] == ["IMG033"]
    assert "isolation: venv" in found[0].help


def test_macos_beside_a_card_gets_the_build_without_cuda(bench: Bench, pytorch: PyTorch) -> None:
    platforms = {"platforms": ["linux-x86_64", "macos-arm64"]}
    lock = locked(bench, pytorch, spec("torch", targets={"here": {"kind": "local", "gpu": "L4", "cuda": "12.8"}}, **platforms))
    assert lock.targets["here"].environments == ("linux-x86_64-cu128", "macos-arm64-cpu")
    assert held(lock, "here")["torch"] == "2.11.0+cu128"
    assert held(lock, "here", "macos-arm64")["torch"] == "2.11.0"


def test_windows_with_a_card_takes_torch_from_its_index(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(bench, pytorch, spec("torch", targets={"here": {"kind": "local", "gpu": "L4", "cuda": "13.0"}}, platforms=["windows-x86_64"]))
    assert held(lock, "here", "windows-x86_64")["torch"] == "2.13.0+cu130"


def test_versions_that_cannot_be_brought_together_are_said_with_where_they_are(bench: Bench, pytorch: PyTorch) -> None:
    packages = ("numpy<=2.0.2 ; sys_platform == 'linux'", "numpy>2.0.2 ; sys_platform == 'darwin'")
    with pytest.raises(LockError) as caught:
        locked(bench, pytorch, spec(*packages, targets={"here": LAPTOP}, platforms=["linux-x86_64", "macos-arm64"]))
    assert "no one version of numpy" in caught.value.what
    assert "2.0.2 in linux-x86_64" in caught.value.why


def test_no_build_for_a_card_is_said_for_every_target(bench: Bench, pytorch: PyTorch) -> None:
    with pytest.raises(LockError) as caught:
        locked(bench, pytorch, spec("torch==2.13.*", targets={"laptop": LAPTOP, "old": {"kind": "local", "gpu": "K80"}}))
    assert "target old (K80): no build that the facts know runs there" in caught.value.why
    assert "target laptop (none): cpu" in caught.value.why


def test_a_torch_that_the_facts_do_not_know_cannot_be_chosen_for(bench: Bench, pytorch: PyTorch) -> None:
    with pytest.raises(LockError) as caught:
        locked(bench, pytorch, spec("torch==9.9.*", targets={"here": {"kind": "local", "gpu": "L4"}}))
    assert "none of them is torch==9.9.*" in caught.value.why
    assert "cuda:" in caught.value.hint


def test_an_index_that_serves_another_build_is_refused(bench: Bench, pytorch: PyTorch) -> None:
    wanted = spec("torch==2.11.*", targets={"here": {"kind": "local", "gpu": "L4", "cuda": "12.8"}})
    machine = Machine(bench.environment(**{**pytorch.offline(), "PROVISION_INDEX_PYTORCH_CU128": f"{pytorch.folder.as_uri()}/cu126"}))
    with pytest.raises(LockError) as caught:
        resolve(wanted, load(), machine, lambda _: None)
    assert caught.value.what == "index pytorch-cu128 gave torch 2.11.0+cu126, and cu128 was asked for"


def test_what_lies_on_this_machine_is_marked(bench: Bench, pytorch: PyTorch) -> None:
    """An index of this machine has confirmed nothing, whichever scheme it is reached by."""
    lock = locked(bench, pytorch, spec("torch", targets={"here": LAPTOP}))
    assert all(package.unconfirmed for package in lock.packages)


def test_exclude_newer_holds_for_torch_by_the_facts() -> None:
    wanted, facts = spec("torch", targets={"here": LAPTOP}, exclude_newer="2026-01-31"), load()
    assert admitted(wanted, facts)[0].release == "2.10.0"
    assert admitted(wanted.model_copy(update={"exclude_newer": "2026-01-20"}), facts)[0].release == "2.9.1"


def test_a_kept_release_comes_first_then_that_of_the_runtime() -> None:
    wanted, facts = spec("torch", targets={"laptop": LAPTOP, "colab": COLAB}), load()

    def first(kept: str | None) -> Proposal:
        return next(proposals(wanted, facts, kept))

    assert first(None).release == "2.11.0"
    assert first("2.13.0").release == "2.13.0"
    assert first("2.9.9").release == "2.11.0"


def test_every_choice_of_the_facts_runs_where_it_is_chosen_for() -> None:
    """Over all cards: what is proposed has code for the card, and runs on the driver."""
    facts = load()
    for card in facts.cards:
        if card.host not in ("", "linux-x86_64"):
            continue
        try:
            found = list(proposals(spec("torch", targets={"here": {"kind": "local", "gpu": card.name}}), facts))
        except LockError:
            assert not any(facts.covering(card, row.release) for row in facts.torch if "3.12" in row.pythons)
            continue
        for proposal in found:
            build = facts.build(proposal.release or "", proposal.choices["here"].flavour)
            assert build is not None
            assert facts.covers(card, build)


def beside(rig: PyTorch, folder: Path, *wheels: Path) -> dict[str, str]:
    """The variable that adds wheels to those of the rig's default index."""
    return {"PROVISION_INDEX_PYPI": make_index(folder / "more", (*(rig.folder / "default").glob("*/*.whl"), *wheels))}
