"""The documentation is true: generated pages are fresh, links lead somewhere, paths exist, and the
commands on the pages do what they show.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from measures.prose import page_phrases, reading_ease
from provision import field_types
from provision import spec as language
from provision.kinds import REGISTRY, base, settings
from provision.rules import RULES, load_notebook_rules
from provision.schema import json_schema
from tests import fork_server
from tests.pytorch_rig import lay_out
from tests.rig import MINOR, TAG, Bench, make_index, make_wheel

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SHOWN_PYTHON = '"3.11"'
SHOWN_FOLDER = "/home/me/project"
MODELS = {
    name: model
    for module in (
        language,
        field_types,
        base,
        settings,
        *(sys.modules[kind.model.__module__] for kind in REGISTRY.kinds),
    )
    for name, model in vars(module).items()
    if isinstance(model, type)
    and issubclass(model, BaseModel)
    and model.__module__ == module.__name__
    and not name.startswith("_")
    and model not in (base.TargetModel, field_types.StrictModel, field_types.ShorthandModel)
}
SCHEMA = json_schema({})


def _render() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "render_docs", ROOT / "support" / "render_docs.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


render_docs = _render()

PAGES = tuple(
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.parent not in {DOCS / render_docs.RULE_PAGES, DOCS / render_docs.COMMAND_PAGES}
)
"""The pages under version control."""
MARKDOWN = (*sorted(ROOT.glob("*.md")), *PAGES)


# Generated pages


def test_generated_pages_are_fresh() -> None:
    assert render_docs.stale_pages(DOCS, render_docs.pages()) == [], "run make docs"


@pytest.mark.long
def test_stale_missing_and_leftover_pages_are_replaced(tmp_path: Path) -> None:
    expected = {**render_docs.pages(), **render_docs.unversioned_pages()}
    render_docs.write_pages(tmp_path)
    assert render_docs.stale_pages(tmp_path, expected) == []
    reference = tmp_path / "reference"
    (reference / "spec.md").write_text("old", encoding="utf-8")
    (reference / "rules/PKG001.md").unlink()
    (reference / "rules/PKG999.md").write_text("gone", encoding="utf-8")
    (reference / "commands/gone.md").write_text("gone", encoding="utf-8")
    assert render_docs.stale_pages(tmp_path, expected) == [
        "reference/rules/PKG001.md",
        "reference/spec.md",
    ]
    render_docs.write_pages(tmp_path)
    assert render_docs.stale_pages(tmp_path, expected) == []
    assert not (reference / "rules/PKG999.md").exists()
    assert not (reference / "commands/gone.md").exists()


def test_every_rule_has_an_anchor() -> None:
    anchors = _anchors(DOCS / "reference/rules.md")
    assert {rule.id.lower() for rule in (*RULES, *load_notebook_rules())} <= anchors


def test_the_script_says_whether_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "support/render_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "docs are up to date\n")


def test_the_schema_is_that_of_the_command() -> None:
    done = fork_server.run([*fork_server.ARGV, "schema"], capture_output=True, check=True)
    assert done.stdout == (DOCS / "spec.schema.json").read_bytes()


# The language


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_part_and_every_field_is_described(name: str) -> None:
    assert (MODELS[name].__doc__ or "").strip()
    part = SCHEMA if name == "Spec" else SCHEMA["definitions"][name]
    fields = next(
        form["properties"] for form in (part, *part.get("anyOf", ())) if "properties" in form
    )
    assert set(fields) == set(MODELS[name].model_fields)
    for key, field in MODELS[name].model_fields.items():
        tells_the_kind = key == "kind" and len(get_args(field.annotation)) == 1
        assert fields[key].get("description") or tells_the_kind, f"{name}.{key} has no description"


def test_every_part_has_a_section_with_an_example_of_every_key() -> None:
    examples = yaml.safe_load(render_docs.EXAMPLES)
    assert set(render_docs.PARTS) == set(examples) == set(MODELS) - {"Spec"}
    for name, example in examples.items():
        assert set(example) == set(MODELS[name].model_fields), name
    fields = render_docs.top_values(render_docs.WHOLE + render_docs.OTHER_FIELDS)
    assert set(fields) == set(language.Spec.model_fields)
    assert {kind.model.__name__ for kind in REGISTRY.kinds} < set(render_docs.PARTS)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"Spec"}))
def test_the_examples_are_valid(name: str) -> None:
    example = yaml.safe_load(render_docs.EXAMPLES)[name]
    whole = (
        [{key: value} for key, value in example.items()] if name == "SecretReference" else [example]
    )
    of_git = {"git", "rev", "subdirectory"}
    if name in ("Package", "Code"):  # one source each
        sources = ({"index"}, {"path", "editable"}, of_git)
        every = set().union(*sources)
        whole = [
            {key: value for key, value in example.items() if key not in every - kept}
            for kept in sources
        ]
    for part in whole:
        MODELS[name].model_validate(part)


def test_the_whole_example_is_a_spec_without_errors(bench: Bench) -> None:
    path = bench.spec(render_docs.WHOLE)
    (path.parent / "src").mkdir()
    done = bench.run("lint", str(path))
    assert done.returncode == 0, done.stdout


# Words


def test_pages_are_in_plain_english(subtests: pytest.Subtests) -> None:
    for page in MARKDOWN:
        with subtests.test(page.relative_to(ROOT).as_posix()):
            assert page_phrases(page.read_text(encoding="utf-8")) == []


def test_a_forbidden_phrase_is_found_in_prose_only() -> None:
    page = "The lock lies beside it.\n```text\nbeside\n```\n`beside` [next](beside.md) told\n"
    assert page_phrases(page) == ["1: beside", "5: told"]


def test_reading_ease_is_that_of_the_sentences() -> None:
    plain = "The lock is next to the spec. It lists each package.\n"
    dense = "Comprehensive environmental verification necessitates dependency installation.\n"
    code = "# Heading\n```sh\nprovision reproducibility\n```\n| a table | of verification |\n"
    assert reading_ease([plain + code]) == reading_ease([plain]) > 80
    assert reading_ease([dense]) < 0


# Environment variables


INTERNAL_VARIABLES = {
    "PROVISION_METADATA",
    "PROVISION_PATH",
    "PROVISION_RUN",
    "PROVISION_RUN_NOTES",
    "PROVISION_SANDBOX",
    "PROVISION_SECRETS",
    "PROVISION_STARTED",
    "PROVISION_STORAGE",
}
"""What provision sets for its own programs on a device, in a sandbox or beside a run."""


def test_the_page_names_every_variable_that_provision_reads() -> None:
    page = (DOCS / "reference/environment-variables.md").read_text(encoding="utf-8")
    described = {name.removesuffix("_NAME") for name in re.findall(r"`(PROVISION_[A-Z_]+)", page)}
    read = {
        name.rstrip("_")
        for folder in ("src", "templates")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".sh"}
        for name in re.findall(r"[\"'](PROVISION_[A-Z_]+)", path.read_text(encoding="utf-8"))
    }
    assert "PROVISION_CONDA" in read
    assert read - INTERNAL_VARIABLES <= described


# Links and paths


WHOLE = [
    (page, text)
    for page in (ROOT / "README.md", *PAGES)
    for text in re.findall(
        r"(?<!-->\n)^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    if all(re.search(rf"^{key}:", text, re.MULTILINE) for key in ("gpu", "python", "packages"))
]
"""Specs that a reader may copy as they are, but for files of tested blocks: some of these are wrong
on purpose.
"""


@pytest.mark.parametrize(("page", "text"), WHOLE, ids=[page.name for page, _ in WHOLE])
def test_a_whole_spec_of_a_page_has_no_error(bench: Bench, page: Path, text: str) -> None:
    spec = bench.spec(text)
    (spec.parent / "src").mkdir()
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 0, done.stdout


def test_links_between_pages_lead_somewhere(subtests: pytest.Subtests) -> None:
    for page in MARKDOWN:
        with subtests.test(page.relative_to(ROOT).as_posix()):
            assert _broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](other.md) [b](#one) [c](#two) [d](page.md#one) "
        "[e](https://example.com)\n```\n[f](in-code.md)\n```\n",
        encoding="utf-8",
    )
    assert _broken_links(page) == ["other.md", "#two"]


def test_paths_named_in_the_architecture_exist() -> None:
    assert _missing_paths(DOCS / "architecture.md") == []


def test_a_path_that_does_not_exist_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`src/provision/lock/` `nowhere/` `src/provision/nowhere.py` `views/` "
        "`tests/rig.py` `docs/nowhere.md` `envs/STEM.TARGET`",
        encoding="utf-8",
    )
    assert _missing_paths(page) == ["nowhere/", "src/provision/nowhere.py", "docs/nowhere.md"]


def test_the_architecture_names_every_package() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    packages = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / "src/provision").iterdir()
        if not path.name.startswith(("_", "."))
    }
    assert {name for name in packages - {"py.typed"} if f"`{name}`" not in text} == set()


def test_every_decision_is_listed() -> None:
    listed = re.findall(
        r"\]\((\d{4}-[^)]+)\)", (DOCS / "decisions/README.md").read_text(encoding="utf-8")
    )
    assert listed == sorted(path.name for path in (DOCS / "decisions").glob("[0-9]*.md"))


def _broken_links(page: Path) -> list[str]:
    text = _prose(page)
    links = [
        link
        for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text)
        if not re.match(r"[a-z]+:", link)
    ]
    return [link for link in links if not _leads_somewhere(page, *link.partition("#")[::2])]


def _leads_somewhere(page: Path, path: str, anchor: str) -> bool:
    other = page.parent / path if path else page
    return other.exists() and (not anchor or anchor in _anchors(other))


def _anchors(page: Path) -> set[str]:
    text = _prose(page)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = re.findall(r'<a id="([^"]+)">', text)
    return {
        *(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings),
        *named,
    }


def _prose(page: Path) -> str:
    return re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def _missing_paths(page: Path) -> list[str]:
    """Return the code words that look like a path of the repository and lead nowhere: they end in a
    slash or a suffix, or name a package's file.
    """
    words = re.findall(r"`([A-Za-z_.][\w./-]*)`", _prose(page))
    paths = [
        word
        for word in words
        if re.search(r"/$|\.(py|toml|md|json|yaml)$", word)
        and not re.match(r"\.provision|reports/|envs/|/|.*(STEM|NAME)", word)
    ]
    made = {
        "state.json",
        "provision.schema.json",
        "journal.json",
        "report.json",
        "report.html",
        "report-only.json",
        "provision.json",
        "expectations.json",
        "plan.json",
        "compiled.json",
    }
    return [
        path
        for path in paths
        if path not in made and not any((root / path).exists() for root in (ROOT, *_roots()))
    ]


def _roots() -> Iterator[Path]:
    package = ROOT / "src/provision"
    yield package
    yield from (
        package / name
        for name in (
            "commands",
            "state_store",
            "source",
            "lock",
            "agent",
            "agent/probe",
            "verification",
        )
    )


# Blocks that are run


@dataclass(frozen=True)
class Step:
    """A file to write, or commands with their exit code and the output that the page shows."""

    place: str
    file: str = ""
    text: str = ""
    code: int = 0

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each command with the lines that the page shows of its output."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, shown


_BLOCK = re.compile(
    r"^<!-- (?:file: (?P<file>\S+)|tested(?:: exit (?P<code>\d+))?) "
    r"-->\n```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def _steps(text: str, name: str = "page.md") -> list[Step]:
    return [
        Step(
            f"{name}:{text.count(chr(10), 0, block.start()) + 1}",
            block["file"] or "",
            block["text"],
            int(block["code"] or 0),
        )
        for block in _BLOCK.finditer(text)
    ]


RUN = {
    page.relative_to(DOCS).as_posix(): text
    for page in PAGES
    if re.search(r"^<!-- tested\b", text := page.read_text(encoding="utf-8"), re.MULTILINE)
}
"""Pages with blocks that are run, each from its beginning in a new project."""


@pytest.mark.parametrize("name", RUN)
def test_a_page_shows_what_the_commands_do(docs_bench: Bench, name: str) -> None:
    wrong = [fault for step in _steps(RUN[name], name) for fault in _faults(step, docs_bench)]
    assert wrong == [], "\n\n".join(wrong)


def test_every_marked_block_is_run() -> None:
    assert len(RUN) > 10
    for name, text in RUN.items():
        marks = re.findall(r"^<!-- (?:file|tested)\b.*-->$", text, re.MULTILINE)
        steps = _steps(text)
        assert len(steps) == len(marks), name
        assert all(next(step.commands())[0] for step in steps if not step.file)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("<!-- tested -->\n```console\n$ provision lint nowhere.yaml\n```\n", "exit 2, not 0"),
        (
            (
                "<!-- tested: exit 2 -->\n```console\n$ provision lint nowhere.yaml\nerror: "
                "cannot write nowhere.yaml\n```\n"
            ),
            "not said: error: cannot write nowhere.yaml",
        ),
        (
            (
                "<!-- tested: exit 2 -->\n```console\n$ provision lint nowhere.yaml\nerror: "
                "cannot write ...\n```\n"
            ),
            "not said: error: cannot write ...",
        ),
    ],
)
def test_a_block_that_is_not_true_is_found(docs_bench: Bench, block: str, said: str) -> None:
    (step,) = _steps(block)
    (fault,) = _faults(step, docs_bench)
    assert said in fault


@pytest.fixture
def docs_bench(tmp_path: Path) -> Bench:
    """A project with small wheels that have the names and versions of the pages' packages, next to
    the checkout.
    """
    pytorch, folder = lay_out(tmp_path / "pytorch"), tmp_path / "project"
    kernels = (make_wheel(tmp_path / "wheels", "ipykernel", name) for name in ("6.17.1", "7.1.0"))
    make_index(pytorch.folder / "default", tuple(kernels))  # Colab's ipykernel, and the newest
    of_cpu = pytorch.folder / "wheels/cpu"
    make_wheel(
        of_cpu, "torch", "2.13.0+cpu", tag=f"{TAG}-{TAG}-manylinux_2_28_x86_64"
    )  # for the Python of these tests, whichever it is
    home = folder / "home"
    home.mkdir(parents=True)
    (tmp_path / "provision").symlink_to(ROOT)
    places = {
        "PROVISION_INDEX_PYTORCH_CPU": make_index(tmp_path / "cpu", tuple(of_cpu.iterdir())),
        "XDG_DATA_HOME": str(home),
        "JUPYTER_DATA_DIR": str(home),
    }
    offline = pytorch.offline()
    return Bench(folder, offline["PROVISION_INDEX_PYPI"], {**offline, **places})


def _faults(step: Step, bench: Bench) -> Iterator[str]:
    """Do what a block says and yield each way in which it does not come out as shown. The numbers
    of a machine may differ, words may not.
    """
    if step.file:
        bench.spec(_here(step.text, bench), step.file)
        return
    for command, shown in step.commands():
        done = _run(command, bench)
        said = {_plain(line, bench) for line in (done.stdout + done.stderr).splitlines()}
        missing = [line for line in shown if line != "..." and not _said(_plain(line, bench), said)]
        if missing or done.returncode != step.code:
            problems = (
                [f"exit {done.returncode}, not {step.code}"] if done.returncode != step.code else []
            )
            yield "\n".join(
                [
                    f"{step.place}: {command}",
                    *problems,
                    *(f"not said: {line}" for line in missing),
                    "--- said:",
                    done.stdout + done.stderr,
                ]
            )


def _run(command: str, bench: Bench) -> subprocess.CompletedProcess[str]:
    words = shlex.split(_here(command, bench))
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    program, *rest = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    if program in ("mkdir", "cp"):
        return subprocess.run(
            [program, *rest], cwd=bench.folder, capture_output=True, text=True, check=False
        )
    assert program == "provision", command
    done = bench.run(*rest, **variables)
    if rest[0] == "init" and "--from" not in rest:
        path = bench.folder / "provision.yaml"
        path.write_text(_here(path.read_text(encoding="utf-8"), bench), encoding="utf-8")
    return done


def _here(text: str, bench: Bench) -> str:
    return text.replace(SHOWN_PYTHON, f'"{MINOR}"').replace(SHOWN_FOLDER, str(bench.folder))


def _plain(line: str, bench: Bench) -> str:
    line = (
        line.replace(str(bench.folder), SHOWN_FOLDER).replace(" (unconfirmed)", "").rstrip()
    )  # wheels of this machine are, those of an index are not
    return re.sub(r"\d+(?:\.\d+)*", "#", re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b", "#", line))


def _said(line: str, said: set[str]) -> bool:
    return (
        any(other.startswith(line[:-3]) for other in said) if line.endswith("...") else line in said
    )
