"""Built-in profiles: clean against every card they are made for and without one, and of use to
`plan` on a machine without a card.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from provision.assets import find_builtin_profile, list_builtin_profiles
from provision.facts import Facts
from provision.facts.versions import require_version
from provision.spec import parse_size
from provision.target_facts import find_unlockable
from provision.targets.local.observation import find_spec_refusals
from tests.rules.conftest import Ask

CARDS = ("L4", "A100-80GB", "T4", "none")
NO_CARD = "requires: {vram: null, compute_capability: null}\n"


def _extended(profile: str, gpu: str = "L4", python: str = "3.12", more: str = "") -> str:
    return f'extends: builtin:{profile}\ngpu: {gpu}\npython: "{python}"\n{more}'


def test_the_profiles_are_those_that_are_promised() -> None:
    assert list_builtin_profiles() == (
        "deepspeed",
        "huggingface-cuda",
        "huggingface-trainer",
        "peft-qlora",
    )


@pytest.mark.parametrize("python", ["3.11", "3.12"])
@pytest.mark.parametrize("gpu", CARDS)
@pytest.mark.parametrize("profile", list_builtin_profiles())
def test_every_profile_is_clean_on_every_card(
    profile: str, gpu: str, python: str, ask: Ask
) -> None:
    more = NO_CARD if gpu == "none" else ""
    assert ask(_extended(profile, gpu, python, more=more)).ids == []


@pytest.mark.parametrize("cuda", ["12.6", "12.8", "13.0"])
@pytest.mark.parametrize("profile", list_builtin_profiles())
def test_every_profile_is_clean_with_every_cuda(profile: str, cuda: str, ask: Ask) -> None:
    for gpu in CARDS[:-1]:
        assert ask(_extended(profile, gpu, more=f'cuda: "{cuda}"\n')).ids == []


@pytest.mark.parametrize("profile", list_builtin_profiles())
def test_every_profile_can_be_planned_without_a_card(profile: str, ask: Ask) -> None:
    """`plan` refuses what cannot be checked: nothing is left of it where the card's requirements
    are taken out.
    """
    spec = ask(_extended(profile, "none", more=NO_CARD)).case.spec
    assert list(find_spec_refusals(spec.for_target("local"), "local", "linux-x86_64")) == []
    assert list(find_unlockable(spec.for_target("local"))) == []
    assert any(package.build for package in spec.packages) == (profile == "deepspeed")


@pytest.mark.parametrize("profile", list_builtin_profiles())
def test_every_profile_can_be_planned_at_a_target_without_a_card(profile: str, ask: Ask) -> None:
    text = _extended(
        profile, more="targets: {laptop: {kind: local, gpu: none}, server: {kind: local}}\n"
    )
    judged = ask(text)
    assert judged.ids == []
    assert (
        list(find_spec_refusals(judged.case.spec.for_target("laptop"), "laptop", "linux-x86_64"))
        == []
    )
    assert judged.case.spec.for_target("server").requires == judged.case.spec.requires


def test_without_taking_them_out_a_card_is_asked_for(ask: Ask) -> None:
    spec = ask(_extended("huggingface-cuda", "none")).case.spec
    said = [
        (refusal.route, refusal.hint)
        for refusal in find_spec_refusals(spec.for_target("local"), "local", "linux-x86_64")
    ]
    assert [route for route, _ in said] == [
        ("requires", "vram"),
        ("requires", "compute_capability"),
    ]
    assert "vram: null" in said[0][1]


def test_what_a_target_asks_of_a_card_itself_is_never_dropped(ask: Ask) -> None:
    text = _extended(
        "huggingface-cuda",
        more="targets: {laptop: {kind: local, gpu: none, requires: {vram: 4GB}}}\n",
    )
    requires = ask(text).case.spec.for_target("laptop").requires
    assert (requires.vram, requires.driver, requires.ram) == ("4GB", None, "16GB")


@pytest.mark.parametrize("profile", list_builtin_profiles())
def test_a_profile_chooses_no_machine_and_asks_for_no_secret(profile: str) -> None:
    """Credentials are optional: a secret that is named must be there, so only the spec that needs
    one may name it.
    """
    text = yaml.safe_load(find_builtin_profile(profile).read_text(encoding="utf-8"))
    assert set(text) <= {"apiVersion", "extends", "packages", "env", "requires", "training"}
    assert set(text.get("training", {})) <= {"framework"}
    assert {"HF_TOKEN", "WANDB_API_KEY", "HF_HOME"} <= set(
        Path(find_builtin_profile("huggingface-trainer"))
        .read_text()
        .replace(":", " ")
        .replace("{", " ")
        .split()
    )


def test_what_is_optional_is_installed_only_when_listed(ask: Ask) -> None:
    listed = {package.key for package in ask(_extended("huggingface-cuda")).case.spec.packages}
    assert not listed & {
        "wandb",
        "tensorboard",
        "optuna",
        "ray",
        "evaluate",
        "peft",
        "bitsandbytes",
        "deepspeed",
        "nvidia-ml-py",
        "nvidia-ml-py3",
    }


def test_the_card_that_is_documented(ask: Ask, facts: Facts) -> None:
    """Pascal is the least, with 8 GB: a P4 and a T4 do, a GTX 1060 has too little memory, and
    Maxwell is too old.
    """
    requires = ask(_extended("huggingface-cuda")).case.spec.requires
    assert requires.compute_capability is not None
    assert requires.vram is not None
    capability, memory = SpecifierSet(requires.compute_capability), parse_size(requires.vram)
    fits = {
        card.name
        for card in facts.cards
        if capability.contains(card.cc) and card.memory_gb * 10**9 >= memory
    }
    assert {"P4", "P100", "T4", "L4", "A100-80GB", "GTX-1080"} <= fits
    assert not fits & {"K80", "GTX-1060"}
    # The driver of the documents is the floor of CUDA 11, and no profile repeats it: each CUDA has
    # its own.
    assert requires.driver is None
    assert min(
        (row.floor_linux for row in facts.toolkits.values()), key=require_version
    ).startswith("450.")


@pytest.mark.parametrize(
    ("profile", "name", "floor"),
    [
        ("huggingface-trainer", "accelerate", "1.3.0"),
        ("huggingface-trainer", "datasets", "2.15.0"),
        ("huggingface-trainer", "safetensors", "0.4.3"),
        ("huggingface-trainer", "tokenizers", "0.22.0"),
        ("huggingface-trainer", "huggingface-hub", "1.2.1"),
        ("huggingface-trainer", "numpy", "1.17"),
        ("huggingface-trainer", "tqdm", "4.27"),
        ("peft-qlora", "peft", "0.18.0"),
        ("peft-qlora", "accelerate", "1.3.0"),
        ("deepspeed", "deepspeed", "0.9.3"),
    ],
)
def test_the_floors_that_are_documented(profile: str, name: str, floor: str, ask: Ask) -> None:
    package = ask(_extended(profile)).case.spec.package(name)
    assert package is not None
    specifiers = Requirement(package.requirement).specifier
    assert specifiers.contains(floor)
    assert [clause.version for clause in specifiers] == [floor]
