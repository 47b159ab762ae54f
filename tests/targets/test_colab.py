"""The kind colab: what a cell is told, what is refused, what is planned, what is left behind."""

from __future__ import annotations

import io
import json
import random
import string
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.agent.notebook.document import compute_payload_digest, parse_document
from provision.facts import Facts, load_facts
from provision.lock import Lock, LockedFile
from provision.plan import Action, Operation
from provision.state import Ledger, State, create_empty_state
from provision.targets import SandboxSources, TargetContext
from provision.targets.colab.agent_config import build_agent_config, encode_config
from provision.targets.colab.driver import ColabDriver
from provision.targets.colab.observation import observe_folder
from provision.targets.colab.records import NotebookRecord
from provision.targets.colab.rendered_files import render_files
from provision.targets.pinned_uv import read_pinned_uv
from tests.targets.colab_places import place
from tests.targets.drivers import DRIVERS


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def told(there: TargetContext, facts: Facts, nonce: str = "") -> dict[str, Any]:
    return build_agent_config(there, facts, read_pinned_uv(), nonce)


def test_the_document_says_what_is_asked_of_the_runtime(facts: Facts) -> None:
    there = place(
        env={"A": "b"},
        secrets={"HF_TOKEN": {"colab": "MY_TOKEN"}},
        paths={"data": "/content/data"},
        system_packages=["git"],
    )
    document = told(there, facts)
    assert document["spec"] == {
        "name": "restart",
        "stem": "spec",
        "target": "colab",
        "digest": document["expectations"]["spec"]["digest"],
    }
    assert document["lock"] == {
        "digest": there.lock.digest,
        "environment_digest": there.environment.digest,
    }
    assert (document["isolation"], document["python"], document["driver_min"]) == (
        "system",
        "3.12",
        "525.60.13",
    )
    assert document["runtime"] == {
        "version": "2026.07",
        "as_of": facts.runtimes["2026.07"].evidence.as_of,
        "python": "3.12.13",
        "torch": "2.11.0",
        "flavour": "cu128",
        "os": "Ubuntu 22.04",
        "driver": facts.conditions["host driver"].value,
    }
    assert document["gpu"] == {"type": "T4", "device": "Tesla T4", "count": 1}
    assert (document["env"], document["secrets"], document["paths"]) == (
        {"A": "b"},
        {"HF_TOKEN": "MY_TOKEN"},
        {"data": "/content/data"},
    )
    assert document["system_packages"] == ["git"]
    assert document["predicted"]["changed"] == {"numpy": "2.0.2"}
    assert document["predicted"]["restart"] == ["numpy"]
    assert "torch" in document["predicted"]["kept"]
    assert document["uv"] == {
        "version": read_pinned_uv()["version"],
        "files": read_pinned_uv()["files"],
    }
    assert document["expectations"]["python"] == {"version": "3.12", "prefix": ""}


def test_what_the_kernel_runs_on_is_protected_and_what_a_restart_puts_right_is_not(
    facts: Facts,
) -> None:
    protected = told(place(), facts)["protected"]
    assert {"ipython", "ipykernel", "tornado", "google-colab"} <= set(protected)
    assert not {"numpy", "pillow", "pandas"} & set(protected)


@pytest.mark.parametrize(
    ("target", "mode", "changed"), [("colab", "shared", {"numpy": "2.0.2"}), ("apart", "own", {})]
)
def test_what_is_installed_and_where_hangs_on_the_isolation(
    target: str, mode: str, changed: dict[str, str], facts: Facts
) -> None:
    document = told(place(target), facts)
    assert (document["install"]["mode"], document["predicted"]["changed"]) == (mode, changed)
    names = [package["name"] for package in document["install"]["packages"]]
    assert names == sorted(names)
    assert len(names) == len(document["expectations"]["packages"])
    assert document["install"]["indexes"] == {
        "pytorch-cu128": "https://download.pytorch.org/whl/cu128"
    }
    assert all(package["files"] for package in document["install"]["packages"])


def test_only_files_that_run_there_travel(facts: Facts) -> None:
    there = place()
    mac = LockedFile("numpy-2.5.5-cp312-cp312-macosx_14_0_arm64.whl", "1" * 64)
    source = LockedFile("numpy-2.5.5.tar.gz", "2" * 64)
    packages = tuple(
        replace(one, files=(*one.files, mac, source)) if one.name == "numpy" else one
        for one in there.lock.packages
    )
    document = told(replace(there, lock=replace(there.lock, packages=packages)), facts)
    files = next(
        package["files"]
        for package in document["install"]["packages"]
        if package["name"] == "numpy"
    )
    assert mac.name not in files
    assert source.name in files


def test_a_runtime_without_a_gpu_has_the_image_for_that(facts: Facts) -> None:
    document = told(place(gpu="none"), facts)
    assert (document["gpu"], document["runtime"]["flavour"], document["runtime"]["driver"]) == (
        None,
        "cpu",
        None,
    )
    old = told(place(gpu="none", colab={"runtime": "2025.10"}), facts)
    assert old["runtime"]["flavour"] == "cu126"  # one image for all machines then


def test_a_runtime_that_the_facts_do_not_know_is_none(facts: Facts) -> None:
    assert told(place("apart", colab={"runtime": "2031.01"}), facts)["runtime"] is None


def test_a_nonce_follows_from_the_document_and_a_given_one_is_kept(facts: Facts) -> None:
    one = told(place(), facts)
    assert one["nonce"] == one["expectations"]["nonce"] == told(place(), facts)["nonce"]
    assert len(one["nonce"]) == 32
    assert told(place(env={"A": "b"}), facts)["nonce"] != one["nonce"]
    fresh = told(place(), facts, "f" * 32)
    assert fresh["nonce"] == fresh["expectations"]["nonce"] == "f" * 32
    assert encode_config(one).isascii()


def test_in_a_test_of_ours_indexes_stand_where_the_stand_in_says(facts: Facts) -> None:
    there = replace(
        place(),
        sandbox_sources=SandboxSources(
            ("an index",),
            {"pytorch-cu128": "http://127.0.0.1:1/cu128", "pypi": "http://127.0.0.1:1/default"},
            ("/wheels",),
        ),
    )
    install = told(there, facts)["install"]
    assert install["indexes"] == {
        "pytorch-cu128": "http://127.0.0.1:1/cu128",
        "pypi": "http://127.0.0.1:1/default",
    }
    assert install["links"] == ["/wheels"]


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a secret of this machine": (
        "colab",
        {"secrets": {"T": {"env": "T"}}},
        "a Colab notebook can read only secrets stored in Colab",
    ),
    "a secret of Google Cloud": (
        "colab",
        {"secrets": {"T": {"secret": "projects/p/secrets/s/versions/1"}}},
        "a Colab notebook can read only secrets stored in Colab",
    ),
    "an unknown runtime": (
        "colab",
        {"colab": {"runtime": "2031.01"}},
        "the packages of Colab runtime 2031.01 are unknown",
    ),
    "a card that Colab lacks": ("colab", {"gpu": "V100"}, "Colab does not offer V100"),
    "a card that nobody has": ("colab", {"gpu": "X9000"}, "Colab does not offer X9000"),
    "a shape that the card lacks": (
        "colab",
        {"gpu": "A100-40GB", "colab": {"shape": "high"}},
        "Colab has no machine with an A100-40GB in the high shape",
    ),
    "two cards": (
        "colab",
        {"gpu": "T4:2"},
        "a Colab runtime has only one GPU, but 2 are requested",
    ),
    "a toolkit": ("colab", {"cuda_toolkit": "12.8"}, "installing a CUDA toolkit on a runtime"),
    "a secret without a browser": (
        "apart",
        {"secrets": {"T": {"colab": "T"}}, "colab": {"via": "colab-cli", "runtime": "latest"}},
        "Colab provides secrets only to notebooks in a browser",
    ),
    "a pinned runtime through the command line": (
        "apart",
        {"colab": {"via": "colab-cli"}},
        "`via: colab-cli` always starts the newest runtime",
    ),
}


@pytest.mark.long(after=2)
@pytest.mark.thorough
@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_a_runtime_cannot_give_is_refused(case: str) -> None:
    target, fields, why = REFUSED[case]
    there = place(target, **fields)
    found = DRIVERS["colab"].refusals(
        there, DRIVERS["colab"].observe(there, Ledger(create_empty_state("l")), RealSystem())
    )
    assert [refusal.why for refusal in found if why in refusal.why], found
    assert all(refusal.hint for refusal in found)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("colab", {}),
        ("apart", {}),
        ("colab", {"gpu": "L4"}),
        ("apart", {"colab": {"runtime": "2031.01"}}),
    ],
)
def test_what_a_runtime_gives_is_not_refused(target: str, fields: dict[str, Any]) -> None:
    there = place(target, **fields)
    assert (
        DRIVERS["colab"].refusals(
            there, DRIVERS["colab"].observe(there, Ledger(create_empty_state("l")), RealSystem())
        )
        == ()
    )


def test_a_gpu_is_refused_without_torch_and_an_index_of_this_machine_is_too() -> None:
    there = place()
    lock: Lock = replace(
        there.lock,
        packages=tuple(one for one in there.lock.packages if one.name != "torch"),
        indexes={"own": "file:///wheels"},
    )
    kind, bare = DRIVERS["colab"], replace(there, lock=lock)
    whys = [
        refusal.why
        for refusal in kind.refusals(
            bare, kind.observe(bare, Ledger(create_empty_state("l")), RealSystem())
        )
    ]
    assert any("can only be tested through torch" in why for why in whys)
    assert any("the index own is on this machine" in why for why in whys)


def test_a_sandbox_has_no_colab() -> None:
    there = replace(place(), sandbox_sources=SandboxSources(("a look-alike",), {}))
    kind = DRIVERS["colab"]
    assert [
        refusal.why
        for refusal in kind.refusals(
            there, kind.observe(there, Ledger(create_empty_state("l")), RealSystem())
        )
    ] == ["the sandbox does not emulate Colab"]


@pytest.mark.thorough
def test_a_cell_that_would_be_too_large_is_refused_with_the_way_out() -> None:
    there = place(
        env={
            "BLOB": "".join(
                random.Random(1).choices(string.ascii_letters + string.digits, k=1_200_000)
            )
        }
    )
    (refusal,) = DRIVERS["colab"].refusals(
        there, DRIVERS["colab"].observe(there, Ledger(create_empty_state("l")), RealSystem())
    )
    assert refusal.why == "the cell would be above the limit of 1024 KiB"
    assert "--payload-url" in refusal.hint
    apart = observe_folder(
        there.folder.parent,
        there,
        load_facts(),
        Ledger(create_empty_state("l")),
        RealSystem(),
        url="https://example.com/spec.payload",
    )
    assert apart.found_refusals == ()


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("gpu", "shape", "asked"),
    [
        ("T4", "standard", {"accelerator": "GPU", "gpuType": "T4"}),
        ("T4", "high", {"accelerator": "GPU", "gpuType": "T4", "machine_shape": "hm"}),
        ("L4", "standard", {"accelerator": "GPU", "gpuType": "L4", "machine_shape": "hm"}),
        ("A100-40GB", "standard", {"accelerator": "GPU", "gpuType": "A100"}),
        ("A100-80GB", "standard", {"accelerator": "GPU", "gpuType": "A100", "machine_shape": "hm"}),
        ("none", "standard", {}),
        ("none", "high", {"machine_shape": "hm"}),
    ],
)
def test_the_notebook_asks_for_the_machine(
    gpu: str, shape: str, asked: dict[str, str], facts: Facts
) -> None:
    metadata = render_files(place(gpu=gpu, colab={"shape": shape}), facts).notebook["metadata"]
    colab = {key: value for key, value in asked.items() if key != "accelerator"}
    assert metadata.get("accelerator") == asked.get("accelerator")
    assert metadata["colab"] == {
        "provenance": [],
        "runtime_attributes": {"runtime_version": "2026.07"},
        **colab,
    }


def test_the_newest_runtime_is_asked_for_by_naming_none(facts: Facts) -> None:
    assert (
        "runtime_attributes"
        not in render_files(place(colab={"runtime": "latest"}), facts).notebook["metadata"]["colab"]
    )


# Planning and leaving, with real files.


def carried_out(actions: tuple[Action, ...], state: State) -> State:
    said: list[str] = []
    for action in actions:
        for effect in action.effects:
            RealSystem().perform(effect, said.append)
        state = state.after_action(action)
    return state


def planned(there: TargetContext, state: State) -> Action:
    kind = DRIVERS["colab"]
    (action,) = kind.plan(there, kind.observe(there, Ledger(state), RealSystem()))
    return action


def test_a_plan_says_what_changes_on_the_runtime_and_what_it_costs(tmp_path: Path) -> None:
    notes = planned(place(folder=tmp_path / ".provision"), create_empty_state("l")).notes
    assert any(
        note.startswith("runtime: 2026.07, Python 3.12.13, torch 2.11.0, as of 20")
        for note in notes
    )
    assert any(
        note.startswith("machine: T4, 1.19 compute units per hour as of 20") for note in notes
    )
    assert "changed: numpy 2.0.2 to 2.5.5" in notes
    assert any(note.startswith("packages: ") and "1 changed, 0 added" in note for note in notes)
    assert "restart needed: yes (numpy)" in notes
    apart = planned(place("apart", folder=tmp_path / ".provision"), create_empty_state("l")).notes
    assert "packages: in an environment separate from the runtime's packages" in apart
    assert not any(note.startswith("restart") for note in apart)


def test_files_are_written_once_and_kept(tmp_path: Path) -> None:
    there = place(folder=tmp_path / ".provision")
    first = planned(there, create_empty_state("l"))
    state = carried_out((first,), create_empty_state("l"))
    assert first.operation is Operation.CREATE
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "spec.colab.colab.py",
        "spec.colab.ipynb",
    ]
    assert planned(there, state).operation is Operation.KEEP
    (tmp_path / "spec.colab.ipynb").unlink()
    again = planned(there, state)
    assert (again.operation, len(again.effects)) == (Operation.CHANGE, 1)
    assert again.reason.startswith("spec.colab.ipynb is out of date")


def test_files_that_are_there_already_are_recorded(tmp_path: Path) -> None:
    there = place(folder=tmp_path / ".provision")
    carried_out((planned(there, create_empty_state("l")),), create_empty_state("l"))
    action = planned(there, create_empty_state("l"))
    assert (action.operation, action.effects) == (Operation.CHANGE, ())
    assert action.record is not None
    assert set(action.record["files"]) == {"spec.colab.colab.py", "spec.colab.ipynb"}


def test_another_environment_changes_the_files_and_other_names_go(tmp_path: Path) -> None:
    there = place(folder=tmp_path / ".provision")
    state = carried_out((planned(there, create_empty_state("l")),), create_empty_state("l"))
    asked = {**there.lock.inputs, "targets": {"colab": "colab 2026.07 system gpu=T4 cuda=auto"}}
    alone = replace(
        place(folder=tmp_path / ".provision", env={"A": "b"}),
        lock=replace(there.lock, inputs=asked),
    )
    action = planned(alone, state)
    assert action.operation is Operation.CHANGE
    carried_out((action,), state)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.colab.py", "spec.ipynb"]


def test_destroy_removes_what_was_written_and_nothing_that_was_changed_since(
    tmp_path: Path,
) -> None:
    there = place(folder=tmp_path / ".provision")
    state = carried_out((planned(there, create_empty_state("l")),), create_empty_state("l"))
    notebook = tmp_path / "spec.colab.ipynb"
    notebook.write_text(
        notebook.read_text(encoding="utf-8").replace("Your code here", "My code here")
    )
    said: list[str] = []
    for action in DRIVERS["colab"].destroy(there.address, there.folder, Ledger(state)):
        for effect in action.effects:
            RealSystem().perform(effect, said.append)
    assert [path.name for path in tmp_path.iterdir()] == ["spec.colab.ipynb"]
    assert [line for line in said if "has changed since provision wrote it, so it is kept" in line]


@pytest.mark.parametrize("name", ["../other.ipynb", "notes.txt", "/etc/passwd", "sub/spec.ipynb"])
def test_a_state_that_names_other_files_removes_nothing(name: str, tmp_path: Path) -> None:
    state = create_empty_state("l").with_record(
        "spec/colab", NotebookRecord.part, {"title": "t", "files": {name: "0" * 64}, "paths": []}
    )
    with pytest.raises(Exception, match="refusing to remove"):
        DRIVERS["colab"].destroy("spec/colab", tmp_path / ".provision", Ledger(state))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("spec.colab.ipynb", json.dumps({"cells": [], "nbformat": 4})),
        ("spec.colab.colab.py", "print('mine')\n"),
        ("spec.colab.ipynb", "{"),
    ],
)
def test_a_file_of_someone_else_is_not_written_over(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    there, kind = place(folder=tmp_path / ".provision"), DRIVERS["colab"]
    (refusal,) = kind.refusals(
        there, kind.observe(there, Ledger(create_empty_state("l")), RealSystem())
    )
    assert refusal.why == f"{name} exists and was not written by provision"


def test_facts_can_be_given(facts: Facts) -> None:
    runtimes = {"2026.07": facts.runtimes["2026.07"]._replace(python="3.12.99")}
    kind, there = ColabDriver(facts=lambda: facts.with_tables(runtimes=runtimes)), place()
    have = kind.observe(there, Ledger(create_empty_state("l")), RealSystem())
    assert "Python 3.12.99" in kind.plan(there, have)[0].notes[0]


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        (
            "colab",
            {
                "env": {"A": "'\"\\\n!x"},
                "secrets": {"T": {"colab": "MY"}},
                "paths": {"data": "/content/data"},
                "system_packages": ["git"],
            },
        ),
        ("apart", {"gpu": "none"}),
        ("apart", {"colab": {"runtime": "2031.01"}}),
        ("colab", {"gpu": "H100", "requires": {"ram": "16GiB"}}),
    ],
)
def test_the_program_in_the_notebook_can_read_the_document(
    target: str, fields: dict[str, Any], facts: Facts
) -> None:
    document = told(place(target, **fields), facts)
    read = parse_document(json.loads(encode_config(document)))
    assert (read.nonce, read.isolation, read.env, read.secrets) == (
        document["nonce"],
        document["isolation"],
        document["env"],
        document["secrets"],
    )
    assert read.packages == {
        package["name"]: package["version"] for package in document["install"]["packages"]
    }
    assert read.predicted_restart == tuple(document["predicted"]["restart"])


def test_the_payload_is_the_one_that_the_program_in_the_notebook_expects(
    tmp_path: Path, facts: Facts
) -> None:
    made = render_files(place(), facts)
    folder = tmp_path / made.sha256[:12]
    with zipfile.ZipFile(io.BytesIO(made.payload)) as archive:
        archive.extractall(folder)
    assert compute_payload_digest(folder) == made.sha256


@pytest.mark.parametrize("name", ["spec.yaml", "spec.yml"])
def test_a_cell_names_the_file_of_its_spec(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    there = place(folder=tmp_path / ".provision")
    carried_out((planned(there, create_empty_state("l")),), create_empty_state("l"))
    assert (
        f'"make_again": "provision render {name} --target colab"'
        in (tmp_path / "spec.colab.colab.py").read_text()
    )
