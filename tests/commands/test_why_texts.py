"""provision why: every symptom in the words in which it is documented and in those that are printed
now, the versions in them, and what is no symptom.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.facts import load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.verification.error_lookup.known_environment import KnownEnvironment
from provision.verification.error_lookup.symptoms import LookupContext, explain_error
from provision.verification.error_lookup.trace_packages import find_trace_packages
from provision.verification.error_lookup.versions import GROUP_KINDS

TEXTS = Path(__file__).parents[1] / "symptoms"
PRINTED: dict[str, list[dict[str, Any]]] = yaml.load(
    (TEXTS / "printed.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
AROUND = (
    "{}",
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n{}\n',
    "[rank0]: {}\n[rank0]: at the end",
)
CASES = [(identity, case) for identity, cases in PRINTED.items() for case in cases]
FACTS = load_facts()
HERE = KnownEnvironment(
    "the report",
    {"torch": "2.0.1+cu118", "accelerate": "1.15.0", "transformers": "4.29.2"},
    "3.11.7",
    {"host.glibc": "2.31", "driver.version": "535.1"},
)
LOCKED = KnownEnvironment(
    "the lock", {"torch": "2.13.0+cpu", "accelerate": "0.26.1"}, "3.11", {}, is_complete=True
)


def test_every_symptom_has_a_text_and_every_text_a_symptom() -> None:
    assert sorted(PRINTED) == sorted(one.id for one in load_symptoms())
    keys = re.findall(
        r"^([\w-]+):", (TEXTS / "printed.yaml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(keys) == len(PRINTED)


def test_it_is_answered(subtests: pytest.Subtests) -> None:
    symptoms, context = load_symptoms(), LookupContext(FACTS)
    for identity, case in CASES:
        with subtests.test(f"{identity}: {case['text'][:60]}"):
            for around in AROUND:
                alone = identity == "process-killed" and case["text"] in (
                    "Killed",
                    "zsh: killed     python train.py",
                )
                if alone and around.startswith("["):
                    continue  # a shell prints these on a line of their own
                found = explain_error(around.format(case["text"]), symptoms, context)

                assert [one.symptom.id for one in found][:1] == [identity], around
                for words in case.get("says", ()):
                    assert any(words in remark for remark in found[0].remarks), found[0].remarks


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ImportError: cannot import name 'Trainer' from 'transformers'", "(torch, apex)"),
        ("ModuleNotFoundError: No module named 'triton.language'", "your own folder"),
        (
            "outlines 0.0.46 depends on pyairports\nERROR: ResolutionImpossible",
            "has no release of it",
        ),
        ("xFormers can't load C++/CUDA extensions. xFormers was built for:", "a CPU build"),
        ("WeightsUnpickler error: Unsupported operand 10", "is not a weights file"),
        ("module 'pyarrow' has no attribute 'PyExtensionType'", "older than 0.17.1"),
        ("ModuleNotFoundError: No module named 'torch'", "isolated environment of the build"),
        ("RuntimeError: Address already in use (os error 98)", "other servers have their own"),
        ("did not match any variant of untagged enum PyPreTokenizerTypeWrapper", "an old form"),
        ("libcudnn.so.7: cannot open shared object file", "TensorFlow"),
    ],
)
def test_an_answer_includes_the_cause_that_the_text_leaves_open(text: str, words: str) -> None:
    first = explain_error(text, load_symptoms(), LookupContext(FACTS))[0]
    assert words in first.symptom.cause


def test_what_a_group_holds_is_known() -> None:
    for one in load_symptoms():
        assert len(one.tells) == re.compile(one.regex).groups, one.id
        assert {tell.partition(":")[0] for tell in one.tells} <= GROUP_KINDS, one.id


def test_a_match_contains_one_of_the_literals_of_its_symptom() -> None:
    symptoms = {one.id: one for one in load_symptoms()}
    without = [one.id for one in symptoms.values() if not one.literals]
    assert len(without) <= 20, without
    for identity, case in CASES:
        literals = symptoms[identity].literals
        for match in re.finditer(symptoms[identity].regex, case["text"]):
            assert not literals or any(one in match.group() for one in literals), identity


TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 3, in <module>\n'
    '  File "/env/lib/python3.10/site-packages/trl/trainer/sft_trainer.py", line 5, in <module>\n'
    '  File "/env/lib/python3.10/site-packages/peft/peft_model.py", line 37, in <module>\n'
    '  File "/env/lib/python3.10/site-packages/some_unknown_thing/x.py", line 1, in <module>\n'
    "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers' "
    "(/env/lib/python3.10/site-packages/transformers/__init__.py)\n"
)


def test_the_packages_in_the_paths_of_a_traceback_are_named() -> None:
    locked = LOCKED._replace(packages={"peft": "0.14.0", "transformers": "4.37.2"})
    (found,) = explain_error(
        f"{TRACE.replace('peft', 'datasets')}\n{TRACE}",
        load_symptoms(),
        LookupContext(FACTS, environments=(locked,)),
    )

    assert found.symptom.id == "names-do-not-fit"
    assert "raised in peft, called from trl" in found.remarks
    assert "the lock has peft 0.14.0" in found.remarks


def test_an_error_without_a_traceback_has_no_packages_of_paths() -> None:
    assert find_trace_packages("ImportError: cannot import name 'x' from 'y'", 20, FACTS) == ()


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (
            "ImportError: accelerate>=1.1.0 is required",
            LOCKED,
            "accelerate>=1.1.0 is required, and the lock has 0.26.1",
        ),
        (
            "ImportError: accelerate>=1.1.0 is required",
            HERE,
            "and the report has 1.15.0, which satisfies it: the error came from a different",
        ),
        (
            "ImportError: peft>=0.18.0 is required",
            LOCKED,
            "peft>=0.18.0 is required, but the lock does not have it",
        ),
        ("ImportError: peft>=0.18.0 is required", HERE, "peft>=0.18.0 is required"),
        (
            "Disabling PyTorch because PyTorch >= 2.4 is required but found 2.0.1+cu118",
            HERE,
            "torch 2.0.1+cu118 was found, as in the report",
        ),
        (
            "Disabling PyTorch because PyTorch >= 2.4 is required but found 2.0.1+cu118",
            LOCKED,
            "2.0.1+cu118 was found, and the lock has 2.13.0+cpu",
        ),
        (
            "version `GLIBC_2.34' not found",
            HERE,
            "glibc 2.34 is required, and the report has 2.31",
        ),
        (
            "version `GLIBC_2.28' not found",
            HERE,
            "the report has 2.31: the error came from a different environment",
        ),
        (
            "No module named 'peft'",
            LOCKED,
            "the module peft is missing, but the lock does not have it",
        ),
        (
            "No module named 'accelerate'",
            HERE,
            "but the report has accelerate 1.15.0: the error came from a different environment",
        ),
        (
            "No module named 'accelerate.utils'",
            HERE,
            (
                "Python found accelerate, but it has no accelerate.utils; the report has "
                "accelerate 1.15.0"
            ),
        ),
        (
            "No module named 'torch.cluster'",
            LOCKED,
            "Python found torch, but it has no torch.cluster; the lock has torch 2.13.0+cpu",
        ),
        (
            "No module named 'google.cloud.storage'",
            LOCKED,
            "part of the package google-cloud-storage, but the lock does not have it",
        ),
        ("No module named 'google.cloud'", LOCKED, "google is a namespace of many packages"),
        (
            "No module named 'models'",
            LOCKED,
            "models is not a known package: if it is your own code, start Python in its folder",
        ),
        ("the driver of the printer is ready", HERE, ""),
        (
            "The NVIDIA driver on your system is too old (found version 12020)",
            HERE,
            "the report has driver 535.1 and torch 2.0.1+cu118",
        ),
        (
            "TrainingArguments.__init__() got an unexpected keyword argument 'eval_strategy'",
            HERE,
            "the report has transformers 4.29.2",
        ),
        (
            'File "/env/lib/python3.10/site-packages/x.py"\nNo CUDA GPUs are available',
            HERE,
            "from Python 3.10, but the report has Python 3.11.7: the error came",
        ),
    ],
)
def test_versions_are_held_against_what_is_known(
    text: str, place: KnownEnvironment, says: str
) -> None:
    found = explain_error(text, load_symptoms(), LookupContext(FACTS, environments=(place,)))

    if not says:
        assert found == ()
        return
    sentences = (*found[0].remarks, *found[0].confirmations)
    assert any(says in sentence for sentence in sentences), sentences


@pytest.mark.parametrize(
    "version", ["", "x", "1..2", "99999999999999999999", "1.0+" + "a" * 60, "....", "12"]
)
def test_odd_versions_do_no_harm(version: str) -> None:
    texts = (
        f"(found version {version})",
        f"Using the `Trainer` with `PyTorch` requires `accelerate>={version}`",
        f"Disabling PyTorch because PyTorch >= {version} is required but found {version}",
        f"The NVIDIA driver on your system is too old (found version {version})",
        (
            f"with CUDA capability sm_{version} is not compatible with the current PyTorch "
            "installation"
        ),
        f"Found GPU0 X which is of compute capability (CC) {version}",
        f"x{version} is required for a normal functioning of this module, but found x=={version}",
        f"version `GLIBC_{version}' not found",
        (
            f"The 'deepspeed>={version}' distribution was not found and is required by this "
            "application"
        ),
        f"nvcc fatal : Unsupported gpu architecture 'compute_{version}'",
    )
    for text in texts:
        explain_error(text, load_symptoms(), LookupContext(FACTS, environments=(HERE, LOCKED)))


@pytest.mark.parametrize(
    "path", sorted((TEXTS / "unknown").glob("*.txt")), ids=lambda path: path.stem
)
def test_what_is_no_symptom(path: Path) -> None:
    assert [
        one.symptom.id
        for one in explain_error(
            path.read_text(encoding="utf-8"), load_symptoms(), LookupContext(FACTS)
        )
    ] == []


def test_each_symptom_has_a_source() -> None:
    """A place to look it up: a file of a project, an issue, a page, a manual, or what it was tried
    with.
    """
    place = re.compile(
        r"[\w.-]+/[\w.-]+#\d+|\w+\.\w{2,4}\b|\b\w+\(\d\)|tried|wheel|METADATA|@20\d\d|CPython|20\d\d-\d\d-\d\d|\b\d+\.\d+\.\d+\b"
    )
    assert [
        one.id
        for one in load_symptoms()
        if re.search(r"general knowledge|as above", one.evidence.source)
    ] == []
    assert {
        one.id: one.evidence.source
        for one in load_symptoms()
        if not place.search(one.evidence.source)
    } == {}


def test_the_page_says_how_many_there_are() -> None:
    page = (TEXTS.parents[1] / "docs/how-to/explain-errors.md").read_text(encoding="utf-8")
    assert re.findall(r"(\d+) errors, each with its source", page) == [str(len(load_symptoms()))]


def test_what_undeclared_needs_lead_to_is_answered() -> None:
    """The table of undeclared needs quotes what is seen where they are not met; as the end of a
    traceback each is known, and as PKG010's.
    """
    effects = [need.effect for need in FACTS.undeclared if '"' in need.effect]
    assert len(effects) >= 7
    for effect in effects:
        said = effect.split('"')[1]
        module = re.search(r"from '([\w.]+)'", said)
        kind, where = ("AttributeError", "") if "no attribute" in said else ("ImportError", "")
        if module is not None:
            where = (
                f" (/env/lib/python3.12/site-packages/{module[1].replace('.', '/')}/__init__.py)"
            )
        text = (
            'Traceback (most recent call last):\n  File "/home/me/train.py", line 1, in '
            f"<module>\n{kind}: {said}{where}\n"
        )
        found = explain_error(text, load_symptoms(), LookupContext(FACTS))
        assert found, effect
        assert {"PKG010", "PKG024"} & set(found[0].symptom.rules), effect


@pytest.mark.long
@pytest.mark.thorough
def test_no_text_takes_the_search_long() -> None:
    """Each expression over its own beginnings again and again, in lines as long as they are kept:
    what a search with two ends to find would need hours for.
    """
    slow: dict[str, float] = {}
    for one in load_symptoms():
        words = [
            word
            for word in re.findall(r"[\w `'.:]{4,}", re.sub(r"\\.|\(\?[^)]*\)", " ", one.regex))
            if word.strip()
        ] or ["a"]
        for word in {words[0], words[-1], "a", "1", " "}:
            line = (word * 2000)[:2000]
            before = time.process_time()
            re.search(one.regex, "\n".join([line] * 250))
            slow[f"{one.id} {word}"] = time.process_time() - before
    assert {name: seconds for name, seconds in slow.items() if seconds > 1} == {}


@pytest.mark.parametrize(
    ("version", "confirmations"),
    [
        ("5.24.0", ("the lock has transformers 5.24.0 without evaluation_strategy",)),
        ("4.40.0", ()),
        ("", ()),
    ],
)
def test_a_locked_release_without_the_argument_confirms_the_cause(
    version: str, confirmations: tuple[str, ...]
) -> None:
    text = (
        "TypeError: TrainingArguments.__init__() got an unexpected keyword argument "
        "'evaluation_strategy'"
    )
    packages = {"transformers": version} if version else {}
    place = KnownEnvironment("the lock", packages, "3.11", {}, is_complete=True)
    first = explain_error(text, load_symptoms(), LookupContext(FACTS, environments=(place,)))[0]

    assert first.confirmations == confirmations
    assert first.is_confirmed == bool(confirmations)
    assert any("TrainingArguments has evaluation_strategy up to" in line for line in first.remarks)
    assert ("the lock has transformers 4.40.0" in first.remarks) == (version == "4.40.0")
