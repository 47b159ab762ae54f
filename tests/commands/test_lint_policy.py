"""The policy of a project: findings name its line, and a pull request cannot loosen it."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.shared.configuration_file import find_configuration
from provision.commands.shared.load import check_file
from provision.diagnostics import Severity
from provision.errors import UsageError
from provision.facts import load_facts
from tests.commands.test_lint_diff_base import Repository
from tests.commands.test_lint_forms import BAD, GOOD, lint

CLOUD = """\
gpu: A100-40GB
python: "3.11"
packages: [torch==2.13.*]
targets:
  cloud: {kind: workbench, project: p, zones: [us-central1-a], bucket: gs://my-bucket/x, \
machine_type: a2-highgpu-1g}
"""


def policy_findings(folder: Path, text: str, policy: str) -> list[tuple[str, str, str]]:
    (folder / "spec.yaml").write_text(text)
    (folder / "provision.toml").write_text(policy)
    (document,) = check_file(folder / "spec.yaml", RealSystem({}), load_facts())
    found = [item for item in document.diagnostics if item.id.startswith("POL")]
    assert all(item.severity is Severity.ERROR for item in found)
    for item in found:
        assert item.source == f"policy {item.why.partition(' in ')[2]}"
    return [(item.id, item.message, item.why.rpartition("provision.toml")[2]) for item in found]


@pytest.mark.parametrize(
    ("line", "finding", "words"),
    [
        ('gpus = ["L4", "T4"]', "POL001", "does not allow the GPU A100-40GB on target `cloud`"),
        ("gpus = []", "POL001", "does not allow the GPU A100-40GB"),
        ('regions = ["europe-west4"]', "POL002", "does not allow the region us-central1"),
        ('machine-families = ["g2"]', "POL003", "does not allow the machine type a2-highgpu-1g"),
        ("max-hourly-cost = 0.5", "POL004", "costs $3.67 per hour in us-central1, but the policy"),
        ('required-fields = ["cost.limit_per_hour"]', "POL005", "requires cost.limit_per_hour"),
        (
            'required-fields = ["targets.*.labels"]',
            "POL005",
            "requires targets.cloud.labels",
        ),
    ],
)
def test_each_limit_has_its_finding_with_the_line(
    tmp_path: Path, line: str, finding: str, words: str
) -> None:
    (found,) = policy_findings(tmp_path, CLOUD, f"[policy]\n\n{line}\n")
    assert found[0] == finding
    assert words in found[1]
    assert found[2] == ":3"


ALLOWED = """\
[policy]
gpus = ["A100-40GB"]
regions = ["us-central1"]
machine-families = ["a2"]
max-hourly-cost = 10
required-fields = ["gpu", "targets.*.bucket"]
never-ignore = ["PKG001"]
"""


def test_what_the_policy_allows_has_no_finding(tmp_path: Path) -> None:
    assert policy_findings(tmp_path, CLOUD, ALLOWED) == []
    assert policy_findings(tmp_path, GOOD, '[policy]\ngpus = ["L4"]\n') == []


def test_an_unknown_price_is_not_within_the_limit(tmp_path: Path) -> None:
    text = CLOUD.replace("us-central1-a", "nowhere-north1-a")
    (found,) = policy_findings(tmp_path, text, "[policy]\nmax-hourly-cost = 99\n")
    assert "the price of a2-highgpu-1g in nowhere-north1 is unknown" in found[1]


def test_protected_rules_cannot_be_accepted(tmp_path: Path) -> None:
    text = BAD.rstrip() + " # provision: ignore[PKG001] trust me\n"
    found = policy_findings(tmp_path, text, '[policy]\nnever-ignore = ["PKG"]\n')
    assert [(item[0], item[2]) for item in found] == [("POL006", ":2")]
    done = lint(tmp_path, "spec.yaml", "--ignore", "PKG001,SUP", "--output-format", "concise")
    assert done.returncode == 1
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["PKG001", "POL006"]
    baseline = ("--baseline", "b.json", "--write-baseline")
    (tmp_path / "spec.yaml").write_text(BAD)
    assert lint(tmp_path, "spec.yaml", *baseline).returncode == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[lint]\nignore = ["PKG001"]\n[policy]\nnever-ignore = ["PKG"]\n',
            "[lint] ignores PKG001 or lowers its severity, but `never-ignore` lists it",
        ),
        (
            '[lint.per-file-ignores]\n"*" = ["PKG"]\n[policy]\nnever-ignore = ["PKG001"]\n',
            "[lint] ignores PKG or lowers its severity, but `never-ignore` lists it",
        ),
        (
            '[policy]\ngpus = ["A100-40GB"]\nmachine-families = ["g2"]\n',
            "no machine in these families has the GPU A100-40GB",
        ),
        (
            '[policy]\ngpus = ["A100-40GB"]\nmax-hourly-cost = 0.1\n',
            "no machine with the GPU A100-40GB, which `gpus` allows, costs so little",
        ),
        ("[policy]\nmax-hourly-cost = 0\n", "0 allows no machine"),
        ("[policy]\nmax-hourly-cost = nan\n", "nan allows no machine"),
        ('[policy]\nmax-hourly-cost = "2"\n', "expected an amount in US dollars"),
        ('[policy]\ngpus = ["L5"]\n', "there is no GPU L5"),
        ('[policy]\ngpus = "L4"\n', "expected a list of strings"),
        ('[policy]\nmachine-families = ["g3"]\n', "there is no machine family g3"),
        ('[policy]\nrequired-fields = ["gpus"]\n', "specs have no field gpus"),
        ('[policy]\nnever-ignore = ["XYZ001"]\n', "there is no rule XYZ001"),
        ("[policy]\nallowed = []\n", "unknown key allowed"),
    ],
)
def test_contradictions_and_mistakes_are_refused_with_the_line(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "provision.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        find_configuration(tmp_path / "spec.yaml", RealSystem({}))
    assert words in caught.value.what
    assert "/provision.toml:" in caught.value.what


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.folder.mkdir()
    made.git("init", "--quiet", "--initial-branch", "main")
    made.commit({"provision.toml": '[policy]\ngpus = ["L4"]\n', "spec.yaml": GOOD})
    made.git("checkout", "--quiet", "-b", "change")
    return made


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "change",
    [
        {"provision.toml": '[policy]\ngpus = ["A100-40GB"]\n'},
        {"provision.toml": "[lint]\n"},
        {"provision.toml": None},
        {"sub/provision.toml": "[lint]\n", "sub/spec.yaml": CLOUD},
    ],
)
def test_a_change_cannot_loosen_the_policy_of_its_base(
    repository: Repository, change: dict[str, str | None]
) -> None:
    repository.commit({"spec.yaml": CLOUD, **change})
    for words in (("--diff-base", "main"), ("--policy", "main")):
        done = lint(repository.folder, "spec.yaml", "sub", "--skip-foreign", *words)
        done = lint(repository.folder, "spec.yaml", *words)
        assert done.returncode == 1
        assert "POL001" in done.stdout
        assert "`gpus` is set in main:provision.toml:2" in done.stdout
        if "sub/spec.yaml" in change:
            assert "POL001" in lint(repository.folder, "sub/spec.yaml", *words).stdout


def test_the_tip_of_the_base_counts(repository: Repository) -> None:
    repository.commit({"spec.yaml": CLOUD.replace("A100-40GB", "L4").replace("a2-", "g2-")})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"provision.toml": "[policy]\ngpus = []\n"})
    repository.git("checkout", "--quiet", "change")
    assert "POL001" in lint(repository.folder, "spec.yaml", "--diff-base", "main").stdout


def test_a_policy_in_a_file(repository: Repository) -> None:
    (repository.folder.parent / "company.toml").write_text("[policy]\ngpus = []\n")
    (repository.folder / "spec.yaml").write_text(CLOUD)
    done = lint(repository.folder, "spec.yaml", "--policy", "../company.toml")
    assert "`gpus` is set in ../company.toml:2" in " ".join(done.stdout.split())


def test_a_policy_that_is_not_there_is_named(repository: Repository) -> None:
    repository.commit({"provision.toml": None})
    done = lint(repository.folder, "spec.yaml", "--policy", "HEAD")
    assert (done.returncode, done.stdout) == (2, "")
    assert "HEAD has no [policy] table" in done.stderr
    assert (
        "there is no commit gone.toml"
        in lint(repository.folder, "spec.yaml", "--policy", "gone.toml").stderr
    )
