"""One resolution for targets with different builds of torch, by the real uv over the rig of
PyTorch's indexes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.diagnostics import Severity
from provision.errors import LockError
from provision.facts import load_facts
from provision.lock import Lock, dumps, loads
from provision.lock.flavours import FlavourProposal, admitted_torch_releases, propose_flavours
from provision.lock.inputs import list_changed_inputs
from provision.lock.resolve import resolve_spec
from provision.lock.spec_agreement import find_disagreements
from provision.lock.wheels import marker_applies
from provision.rules import LintContext, ResolvedSet, run_rules
from provision.spec import Spec
from provision.suggest.search import EmptySourceText
from tests.pytorch_rig import PyTorch
from tests.rig import Bench, make_index, make_wheel

COLAB = {"kind": "colab", "runtime": "2026.07", "gpu": "T4"}
WORKBENCH = {
    "kind": "workbench",
    "project": "p",
    "zones": ["us-central1-a"],
    "gpu": "L4",
    "image": "workbench-instances-2603-20261004-2157-rc0",
}
LAPTOP = {"kind": "local"}


def spec(*packages: str, targets: dict[str, Any], **fields: object) -> Spec:
    """A CPU spec with those targets for Python 3.12."""
    return Spec.model_validate(
        {"gpu": "none", "python": "3.12", "packages": list(packages), "targets": targets, **fields}
    )


def locked(
    bench: Bench, rig: PyTorch, wanted: Spec, keep: Lock | None = None, **variables: str
) -> Lock:
    """Resolve with the real uv and nothing but the rig."""
    lock = resolve_spec(
        wanted,
        load_facts(),
        RealSystem(bench.environment(**{**rig.offline(), **variables})),
        lambda _: None,
        keep=keep,
    )
    assert find_disagreements(lock, wanted, load_facts()) == ()
    return lock


def held(lock: Lock, target: str, platform: str = "linux-x86_64") -> dict[str, str]:
    environment = lock.environment(target, platform)
    assert environment is not None
    return lock.versions(environment)


def test_targets_share_every_version_but_the_build_of_torch(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(
        bench,
        pytorch,
        spec("torch>=2.10", targets={"laptop": LAPTOP, "colab": COLAB, "workbench": WORKBENCH}),
    )
    laptop, colab, workbench = (held(lock, name) for name in ("laptop", "colab", "workbench"))
    assert (laptop["torch"], colab["torch"], workbench["torch"]) == (
        "2.11.0+cpu",
        "2.11.0+cu128",
        "2.11.0+cu128",
    )
    assert not any(name.startswith(("nvidia-", "triton")) for name in laptop)
    assert "triton" in colab
    shared = laptop.keys() & colab.keys() - {"torch"}
    assert {name: laptop[name] for name in shared} == {name: colab[name] for name in shared}
    assert lock.indexes == {
        f"pytorch-{name}": f"https://download.pytorch.org/whl/{name}" for name in ("cpu", "cu128")
    }


def test_every_choice_is_named_with_its_reason(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(
        bench,
        pytorch,
        spec("torch>=2.10", targets={"laptop": LAPTOP, "colab": COLAB, "workbench": WORKBENCH}),
    )
    reasons = {name: chosen.reason for name, chosen in lock.targets.items()}
    assert reasons["laptop"] == "cpu: the spec sets gpu: none"
    assert reasons["colab"].startswith(
        "cu128: the build of torch 2.11.0 in Colab runtime 2026.07; it supports T4 (sm_75) "
        "and runs with driver 580.82.07"
    )
    assert reasons["workbench"].startswith(
        "cu128: the same as target colab; it supports L4 (sm_89) and runs with driver 580."
    )
    assert [(e.key, e.driver) for e in lock.environments] == [
        ("linux-x86_64-cpu", None),
        ("linux-x86_64-cu128", "525.60.13"),
    ]


def test_a_lock_of_several_builds_is_read_back_and_is_the_same_bytes_again(
    bench: Bench, pytorch: PyTorch
) -> None:
    wanted = spec("torch>=2.10", targets={"laptop": LAPTOP, "colab": COLAB})
    lock = locked(bench, pytorch, wanted)
    assert loads(dumps(lock), "x.lock") == lock
    assert dumps(locked(bench, pytorch, wanted)) == dumps(lock)
    assert dumps(locked(bench, pytorch, wanted, keep=lock)) == dumps(lock)


def test_where_no_runtime_brings_one_it_is_the_newest_that_runs(
    bench: Bench, pytorch: PyTorch
) -> None:
    lock = locked(bench, pytorch, spec("torch<2.12.1", targets={"workbench": WORKBENCH}))
    assert held(lock, "workbench")["torch"] == "2.12.0+cu130"
    assert (
        "the newest build of torch 2.12.0 that is known to exist; it supports L4 (sm_89)"
        in lock.targets["workbench"].reason
    )


def test_an_unknown_driver_gets_the_build_that_asks_least_of_it(
    bench: Bench, pytorch: PyTorch
) -> None:
    here = {"kind": "local", "gpu": "L4"}
    lock = locked(bench, pytorch, spec("torch==2.12.0", targets={"local": here}))
    assert held(lock, "local")["torch"] == "2.12.0+cu126"
    assert (
        "the driver is unknown, and this build of torch 2.12.0 has the lowest "
        "driver requirement; it supports L4 (sm_89)" in lock.targets["local"].reason
    )
    known = locked(
        bench,
        pytorch,
        spec("torch==2.12.0", targets={"local": {**here, "requires": {"driver": ">=580"}}}),
    )
    assert held(known, "local")["torch"] == "2.12.0+cu130"


def test_cards_that_no_build_has_in_common_get_one_each(bench: Bench, pytorch: PyTorch) -> None:
    """V100 left the builds of CUDA 13, B200 came with them; each set is judged for its own target
    only.
    """
    bench.spec(
        'gpu: V100\npython: "3.12"\npackages: [torch==2.12.0]\ntraining: {framework: torch}\n'
        "targets:\n  old: {kind: local}\n  new: {kind: local, gpu: B200, requires: "
        "{driver: '>=580'}}\n"
    )
    done = bench.run("lock", "spec.yaml", **pytorch.offline())
    assert done.returncode == 0, done.stderr
    lock = loads((bench.folder / "spec.lock").read_text(), "spec.lock")
    assert held(lock, "old")["torch"] == "2.12.0+cu126"
    assert held(lock, "new")["torch"] == "2.12.0+cu130"


def test_torch_is_the_newest_that_every_target_has_a_build_of(
    bench: Bench, pytorch: PyTorch
) -> None:
    """cu128 ends with torch 2.11.0; the CPU target alone would get 2.13.0."""
    lock = locked(
        bench,
        pytorch,
        spec(
            "torch",
            targets={"laptop": LAPTOP, "old": {"kind": "local", "gpu": "T4", "cuda": "12.8"}},
        ),
    )
    assert held(lock, "laptop")["torch"] == "2.11.0+cpu"
    assert held(lock, "old")["torch"] == "2.11.0+cu128"
    assert lock.targets["old"].reason == "cu128: target old sets cuda: 12.8"


@pytest.mark.long
def test_a_package_that_needs_another_torch_moves_it_for_all(
    bench: Bench, pytorch: PyTorch, tmp_path: Path
) -> None:
    more = beside(
        pytorch, tmp_path, make_wheel(tmp_path / "w", "needy", "1.0", requires=("torch<2.11",))
    )
    lock = locked(
        bench, pytorch, spec("needy", "torch", targets={"laptop": LAPTOP, "colab": COLAB}), **more
    )
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


def test_an_environment_of_its_own_takes_nothing_from_the_runtime(
    bench: Bench, pytorch: PyTorch
) -> None:
    alone = locked(
        bench,
        pytorch,
        spec("torch<2.12.1", "numpy", targets={"colab": {**COLAB, "isolation": "venv"}}),
    )
    assert alone.targets["colab"].runtime is None
    assert held(alone, "colab")["torch"].startswith("2.12.0+cu")


def test_a_change_of_what_the_kernel_runs_on_is_an_error_of_the_resolved_set(
    bench: Bench, pytorch: PyTorch, tmp_path: Path
) -> None:
    wheels = (
        make_wheel(tmp_path / "w", "needy", "1.0", requires=("tornado>6.5.7",)),
        make_wheel(tmp_path / "w", "tornado", "6.6"),
    )
    wanted = spec("needy", targets={"colab": COLAB})
    lock = locked(bench, pytorch, wanted, **beside(pytorch, tmp_path, *wheels))
    found = run_rules(
        LintContext(
            wanted, EmptySourceText(), load_facts(), ResolvedSet(held(lock, "colab"), "3.12")
        )
    )
    errors = {one.id for one in found if one.severity is Severity.ERROR}
    assert errors == {"IMG033"}
    assert "isolation: venv" in found[0].help


def test_macos_beside_a_card_gets_the_build_without_cuda(bench: Bench, pytorch: PyTorch) -> None:
    platforms = {"platforms": ["linux-x86_64", "macos-arm64"]}
    lock = locked(
        bench,
        pytorch,
        spec(
            "torch", targets={"local": {"kind": "local", "gpu": "L4", "cuda": "12.8"}}, **platforms
        ),
    )
    assert lock.targets["local"].environments == ("linux-x86_64-cu128", "macos-arm64-cpu")
    assert held(lock, "local")["torch"] == "2.11.0+cu128"
    assert held(lock, "local", "macos-arm64")["torch"] == "2.11.0"


def test_windows_with_a_card_takes_torch_from_its_index(bench: Bench, pytorch: PyTorch) -> None:
    lock = locked(
        bench,
        pytorch,
        spec(
            "torch",
            targets={"local": {"kind": "local", "gpu": "L4", "cuda": "13.0"}},
            platforms=["windows-x86_64"],
        ),
    )
    assert held(lock, "local", "windows-x86_64")["torch"] == "2.13.0+cu130"


def test_versions_that_cannot_be_brought_together_are_said_with_where_they_are(
    bench: Bench, pytorch: PyTorch
) -> None:
    packages = ("numpy<=2.0.2 ; sys_platform == 'linux'", "numpy>2.0.2 ; sys_platform == 'darwin'")
    with pytest.raises(LockError) as caught:
        locked(
            bench,
            pytorch,
            spec(*packages, targets={"local": LAPTOP}, platforms=["linux-x86_64", "macos-arm64"]),
        )
    assert "no single version of numpy" in caught.value.what
    assert "2.0.2 for linux-x86_64" in caught.value.why


def test_no_build_for_a_card_is_said_for_every_target(bench: Bench, pytorch: PyTorch) -> None:
    with pytest.raises(LockError) as caught:
        locked(
            bench,
            pytorch,
            spec(
                "torch==2.13.*", targets={"laptop": LAPTOP, "old": {"kind": "local", "gpu": "K80"}}
            ),
        )
    assert "target old (K80): no known build runs on it" in caught.value.why
    assert "target laptop (none): cpu" in caught.value.why


def test_a_torch_that_the_facts_do_not_know_cannot_be_chosen_for(
    bench: Bench, pytorch: PyTorch
) -> None:
    with pytest.raises(LockError) as caught:
        locked(
            bench, pytorch, spec("torch==9.9.*", targets={"local": {"kind": "local", "gpu": "L4"}})
        )
    assert "no release in them matches torch==9.9.*" in caught.value.why
    assert "cuda:" in caught.value.hint


def test_an_index_that_serves_another_build_is_refused(bench: Bench, pytorch: PyTorch) -> None:
    wanted = spec(
        "torch==2.11.*", targets={"local": {"kind": "local", "gpu": "L4", "cuda": "12.8"}}
    )
    machine = RealSystem(
        bench.environment(
            **{
                **pytorch.offline(),
                "PROVISION_INDEX_PYTORCH_CU128": f"{pytorch.folder.as_uri()}/cu126",
            }
        )
    )
    with pytest.raises(LockError) as caught:
        resolve_spec(wanted, load_facts(), machine, lambda _: None)
    assert (
        caught.value.what
        == "index pytorch-cu128 returned torch 2.11.0+cu126 instead of a build for cu128"
    )


def test_what_lies_on_this_machine_is_marked(bench: Bench, pytorch: PyTorch) -> None:
    """An index of this machine has confirmed nothing, whichever scheme it is reached by."""
    lock = locked(bench, pytorch, spec("torch", targets={"local": LAPTOP}))
    assert all(package.unconfirmed for package in lock.packages)


def test_exclude_newer_holds_for_torch_by_the_facts() -> None:
    wanted, facts = (
        spec("torch", targets={"local": LAPTOP}, exclude_newer="2026-01-31"),
        load_facts(),
    )
    assert admitted_torch_releases(wanted, facts)[0].release == "2.10.0"
    assert (
        admitted_torch_releases(wanted.model_copy(update={"exclude_newer": "2026-01-20"}), facts)[
            0
        ].release
        == "2.9.1"
    )


def test_a_kept_release_comes_first_then_that_of_the_runtime() -> None:
    wanted, facts = spec("torch", targets={"laptop": LAPTOP, "colab": COLAB}), load_facts()

    def first(kept: str | None) -> FlavourProposal:
        return next(propose_flavours(wanted, facts, kept))

    assert first(None).release == "2.11.0"
    assert first("2.13.0").release == "2.13.0"
    assert first("2.9.9").release == "2.11.0"


def test_every_choice_of_the_facts_runs_where_it_is_chosen_for() -> None:
    """Over all cards: what is proposed has code for the card, and runs on the driver."""
    facts = load_facts()
    for card in facts.cards:
        if card.host not in ("", "linux-x86_64"):
            continue
        try:
            found = list(
                propose_flavours(
                    spec("torch", targets={"local": {"kind": "local", "gpu": card.name}}), facts
                )
            )
        except LockError:
            assert not any(
                facts.builds_for_card(card, row.release)
                for row in facts.torch
                if "3.12" in row.pythons
            )
            continue
        for proposal in found:
            build = facts.build(proposal.release or "", proposal.choices["local"].flavour)
            assert build is not None
            assert facts.has_code_for(card, build)


def beside(rig: PyTorch, folder: Path, *wheels: Path) -> dict[str, str]:
    """The variable that adds wheels to those of the rig's default index."""
    return {
        "PROVISION_INDEX_PYPI": make_index(
            folder / "more", (*(rig.folder / "default").glob("*/*.whl"), *wheels)
        )
    }


@pytest.mark.long
def test_one_version_serves_every_release_of_a_python(bench: Bench, tmp_path: Path) -> None:
    """uv would give early and late releases of the same Python different versions; what only the
    early ones need comes along.
    """
    wheels = tmp_path / "wheels"
    forked = (
        "sieve>=2; python_full_version >= '3.12.5'",
        "sieve<2; python_full_version < '3.12.5'",
    )
    made = (
        make_wheel(wheels, "early", "1.0", requires=("timeout; python_full_version < '3.12.3'",)),
        make_wheel(wheels, "timeout", "1.0"),
    )
    index = {
        "PROVISION_INDEX_PYPI": make_index(
            tmp_path / "own",
            (*made, make_wheel(wheels, "sieve", "1.0"), make_wheel(wheels, "sieve", "2.0")),
        )
    }
    lock = resolve_spec(
        spec("early", targets={"local": LAPTOP}),
        load_facts(),
        RealSystem(bench.environment(**index)),
        lambda _: None,
    )
    assert held(lock, "local") == {"early": "1.0", "timeout": "1.0"}
    make_index(tmp_path / "own", (make_wheel(wheels, "torn", "1.0", requires=forked),))
    with pytest.raises(LockError) as caught:
        resolve_spec(
            spec("torn", targets={"local": LAPTOP}),
            load_facts(),
            RealSystem(bench.environment(**index)),
            lambda _: None,
        )
    assert "no single version of sieve" in caught.value.what


@pytest.mark.parametrize(
    ("marker", "platform", "holds"),
    [
        ("", "linux-x86_64", True),
        ("python_full_version >= '3.12.5'", "linux-x86_64", True),
        ("python_full_version < '3.12.5'", "linux-x86_64", True),
        ("python_full_version < '3.12.0'", "linux-x86_64", False),
        ("python_full_version >= '3.13'", "linux-x86_64", False),
        ("platform_release >= '20.0'", "macos-arm64", True),
        ("sys_platform == 'darwin'", "linux-x86_64", False),
    ],
)
def test_markers_hold_for_the_platform_that_is_locked_and_not_for_this_machine(
    marker: str, platform: str, holds: bool
) -> None:
    assert marker_applies(marker, platform, "3.12") is holds


def test_a_wheel_that_the_runtimes_c_library_is_too_old_for_is_not_locked(
    bench: Bench, tmp_path: Path
) -> None:
    """Colab 2026.07 has glibc 2.35, by the facts."""
    wheels = tmp_path / "wheels"
    new, old = "cp312-cp312-manylinux_2_39_x86_64", "cp312-cp312-manylinux_2_17_x86_64"
    index = {
        "PROVISION_INDEX_PYPI": make_index(
            tmp_path / "own",
            (make_wheel(wheels, "foo", "2.0", tag=new), make_wheel(wheels, "foo", "1.0", tag=old)),
        )
    }
    machine = RealSystem(bench.environment(**index))
    assert held(
        resolve_spec(
            spec("foo", targets={"colab": {**COLAB, "gpu": "none"}}),
            load_facts(),
            machine,
            lambda _: None,
        ),
        "colab",
    ) == {"foo": "1.0"}
    with pytest.raises(LockError) as caught:
        resolve_spec(
            spec("foo==2.0", targets={"colab": {**COLAB, "gpu": "none"}}),
            load_facts(),
            machine,
            lambda _: None,
        )
    assert "whose wheels need glibc 2.39; Colab runtime 2026.07 has 2.35" in caught.value.why


def test_a_companion_of_another_build_is_refused(
    bench: Bench, pytorch: PyTorch, tmp_path: Path
) -> None:
    mixed = make_index(
        tmp_path / "mixed",
        (
            *(pytorch.folder / "cu128/torch").glob("*cp312*linux*"),
            *(pytorch.folder / "cpu/torchvision").glob("*cp312*linux*"),
        ),
    )
    wanted = spec(
        "torch==2.11.*",
        "torchvision",
        targets={"local": {"kind": "local", "gpu": "L4", "cuda": "12.8"}},
    )
    with pytest.raises(LockError) as caught:
        locked(bench, pytorch, wanted, PROVISION_INDEX_PYTORCH_CU128=mixed)
    assert (
        caught.value.what
        == "index pytorch-cu128 returned torchvision 0.26.0+cpu instead of a build for cu128"
    )


@pytest.mark.long
def test_another_build_is_tried_where_the_first_has_no_release_that_fits(
    bench: Bench, pytorch: PyTorch
) -> None:
    """torchvision 0.27.0 is that of torch 2.12.0, which has no cu128; the runtime's own torch
    2.11.0 is asked about first.
    """
    lock = locked(
        bench, pytorch, spec("torch<2.13", "torchvision==0.27.0", targets={"colab": COLAB})
    )
    assert held(lock, "colab")["torch"] == "2.12.0+cu130"


def test_torchaudio_is_that_of_the_torch(bench: Bench, pytorch: PyTorch) -> None:
    """Its last release names no torch; the facts know which one it was made for."""
    lock = locked(bench, pytorch, spec("torch==2.10.*", "torchaudio", targets={"local": LAPTOP}))
    assert held(lock, "local")["torchaudio"] == "2.10.0+cpu"


@pytest.mark.parametrize(
    ("required", "build"),
    [("<580", "cu126"), ("<=570", "cu126"), (">=580", "cu130"), (">=525,<570", "cu126")],
)
def test_a_driver_that_is_only_bounded_decides_too(required: str, build: str) -> None:
    found = next(
        propose_flavours(
            spec(
                "torch==2.12.0",
                targets={"local": {"kind": "local", "gpu": "L4", "requires": {"driver": required}}},
            ),
            load_facts(),
        )
    )
    assert found.choices["local"].flavour == build


def test_nccl_that_another_package_brings_to_a_cpu_is_let_be(
    bench: Bench, pytorch: PyTorch, tmp_path: Path
) -> None:
    boost = make_wheel(
        tmp_path / "w",
        "xgboost",
        "3.0",
        requires=("nvidia-nccl-cu12 ; platform_system == 'Linux'",),
    )
    lock = locked(
        bench,
        pytorch,
        spec("torch==2.11.*", "xgboost", targets={"local": LAPTOP}),
        **beside(pytorch, tmp_path, boost),
    )
    assert "nvidia-nccl-cu12" in held(lock, "local")


def test_an_extra_that_is_not_there_is_told(bench: Bench, pytorch: PyTorch) -> None:
    told: list[str] = []
    resolve_spec(
        spec("numpy[nosuch]", targets={"local": LAPTOP}),
        load_facts(),
        RealSystem(bench.environment(**pytorch.offline())),
        told.append,
    )
    assert (
        "warning: numpy[nosuch] has no effect: the extra does not exist, or adds nothing "
        "on these platforms" in told
    )


def test_an_index_that_nothing_comes_from_does_not_make_a_lock_stale(
    bench: Bench, pytorch: PyTorch
) -> None:
    lock = locked(bench, pytorch, spec("numpy", targets={"local": LAPTOP}))
    assert (
        list_changed_inputs(
            spec(
                "numpy",
                targets={"local": LAPTOP},
                indexes={"mine": {"url": "https://packages.example.com/simple"}},
            ),
            lock,
        )
        == ()
    )


@pytest.mark.parametrize(("cuda", "code"), [("12.6", 1), ("13.0", 0)])
def test_a_package_that_comes_unseen_and_is_compiled_for_another_cuda_stops_the_lock(
    bench: Bench, pytorch: PyTorch, tmp_path: Path, cuda: str, code: int
) -> None:
    wheels = (
        make_wheel(tmp_path / "w", "serving", "1.0", requires=("vllm",)),
        make_wheel(tmp_path / "w", "vllm", "0.27.1", requires=("torch==2.13.0",)),
    )
    path = bench.spec(
        f'apiVersion: provision/v1\nname: served\ngpu: L4\ncuda: "{cuda}"\npython: '
        '"3.12"\npackages: [serving==1.0]\n'
    )
    assert "PKG027" not in bench.run("lint", str(path)).stdout
    done = bench.run(
        "lock", str(path), **{**pytorch.offline(), **beside(pytorch, tmp_path, *wheels)}
    )
    assert done.returncode == code, done.stderr
    assert ("PKG027" in done.stderr) is (code == 1)
    assert path.with_suffix(".lock").exists() is (code == 0)


def test_the_example_for_colab_keeps_what_its_runtime_brings(
    bench: Bench, pytorch: PyTorch, tmp_path: Path
) -> None:
    path = bench.spec(
        (Path(__file__).parents[2] / "specs/colab-cpu.yaml").read_text(), "colab-cpu.yaml"
    )
    more = beside(
        pytorch,
        tmp_path,
        make_wheel(tmp_path / "w", "einops", "0.8.2"),
        make_wheel(tmp_path / "w", "einops", "0.9.0"),
    )
    done = bench.run("lock", path.name, **{**pytorch.offline(), **more})
    assert done.returncode == 0, done.stderr
    on_top = loads(path.with_suffix(".lock").read_text(), "colab-cpu.lock").targets["colab"]
    assert (on_top.runtime, on_top.restart, dict(on_top.changed)) == ("2026.07", (), {})
    assert {"torch", "numpy", "einops", "safetensors"} <= set(on_top.kept)
