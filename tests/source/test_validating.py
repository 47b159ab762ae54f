"""Each mistake in the shape of a spec is one finding, at the right characters, with the way out."""

import json
import os
import re
import subprocess
import sys

import pytest

from provision.diagnostics import Applicability, RouteLocation, RoutePart
from provision.kinds import REGISTRY
from provision.schema import json_schema
from provision.source.schema_lookup import find_key_parent, keys_at
from provision.source.vocabulary import (
    FORMAT_DESCRIPTIONS,
    KEY_EXAMPLES,
    KEY_SYNONYMS,
    correct_format,
)
from provision.spec import Spec

OK = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'
SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE


def test_a_good_spec_has_no_findings_and_is_named_by_its_file(folder):
    linted = folder.lint(OK, "My Trainer_v2.yaml")
    assert linted.findings == ()
    assert linted.spec.name == "my-trainer-v2"
    assert folder.lint(OK, "___.yaml").spec.name == "environment"
    assert folder.lint(OK + "name: mine\n").spec.name == "mine"


@pytest.mark.parametrize(
    ("text", "name", "place", "words"),
    [
        ('gpu: 4\npython: "3.12"\npackages: [torch]\n', "wrong-type", "1:6 4", "gpu: {type: L4, count: 2}"),
        ('gpu: [L4]\npython: "3.12"\npackages: [torch]\n', "wrong-type", "1:6 [L4]", "gpu: L4"),
        ('gpu:\npython: "3.12"\npackages: [torch]\n', "wrong-type", "1:5 ", "empty"),
        ('gpu: L4:x\npython: "3.12"\npackages: [torch]\n', "bad-format", "1:6 L4:x", "A100-80GB:2"),
        ('gpu: {count: 1}\npython: "3.12"\npackages: [torch]\n', "missing-key", "1:1 gpu", "type: L4"),
        ('gpu: "-"\npython: "3.12"\npackages: [torch]\n', "bad-format", '1:6 "-"', "the name of a GPU"),
        ('gpu: {type: L4, count: 99}\npython: "3.12"\npackages: [torch]\n', "out-of-range", "1:24 99", "at most 16"),
        ('gpu: L4\npython: "3.12"\npackages: torch\n', "wrong-type", "3:11 torch", "[torch]"),
        ("gpu: L4\npython: '3.12'\npackages: {torch: 2.13, peft: }\n", "wrong-type", "3:11 {torch: 2.13, peft: }", '["torch==2.13", "peft"]'),
        ('gpu: L4\npython: "3.12"\npackages:\n  - torch: "2.13"\n', "wrong-type", '4:5 torch: "2.13"', '"torch==2.13"'),
        ('gpu: L4\npython: "3.12"\npackages: ["torch=>2"]\n', "bad-format", '3:12 "torch=>2"', "write torch>=2"),
        ('gpu: L4\npython: "3.12"\npackages: [a]\ntargets: {c: {kind: colab, bucket: gs://bb/x}}\n', "bad-format", "4:36 gs://bb/x", "a name of 3 to 63 characters"),
        ('gpu: L4\npython: "3.12"\npackages: [torch=2.1]\n', "bad-format", "3:12 torch=2.1", "write torch==2.1"),
        ('gpu: L4\npython: "3.12"\npackages: ["torch>>2"]\n', "bad-format", '3:12 "torch>>2"', "is not a requirement"),
        ('gpu: L4\npython: "3.12"\npackages: ["x[y"]\n', "bad-format", '3:12 "x[y"', "close the bracket"),
        ('gpu: L4\npython: "3.12"\npackages: ["git+https://a/b"]\n', "bad-format", '3:12 "git+https://a/b"', "write NAME @ git+https://"),
        ('gpu: L4\npython: "3.12"\npackages: ["x @ git+https://me:word@a/b"]\n', "bad-format", '3:12 "x @ git+https://me:word@a/b"', "your own credential helper"),
        ('gpu: L4\npython: "3.12"\npackages: ["x @ git+https://a/b#egg=x"]\n', "bad-format", '3:12 "x @ git+https://a/b#egg=x"', "#subdirectory=FOLDER"),
        ('gpu: L4\npython: "3.12"\npackages: ["x @ file:///a/b"]\n', "bad-format", '3:12 "x @ file:///a/b"', "relative to the spec"),
        ('gpu: L4\npython: "3.12"\npackages: ["x @ https://a/b.whl"]\n', "bad-format", '3:12 "x @ https://a/b.whl"', "index"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: trl, git: https://a/b, tag: v1}]\n', "bad-format", "3:12 {name: trl, git: https://a/b, tag: v1}", "write rev instead of tag"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, git: "git@a:b/c"}]\n', "bad-format", '3:27 "git@a:b/c"', "ssh:// before it"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, git: "http://a/b"}]\n', "bad-format", '3:27 "http://a/b"', "an address such as https://"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, git: "https://a/b?t=1"}]\n', "bad-format", '3:27 "https://a/b?t=1"', "may contain a token"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, git: "https://a/b", rev: "a..b"}]\n', "bad-format", '3:47 "a..b"', "a branch, a tag or a commit"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, git: "https://a/b", subdirectory: ../c}]\n', "bad-format", "3:56 ../c", "inside of the repository"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, path: /a}]\n', "bad-format", "3:28 /a", "relative to the spec"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, path: a, git: "https://a/b"}]\n', "bad-format", '3:12 {name: x, path: a, git: "https://a/b"}', "two sources"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, path: a, index: b}]\n', "bad-format", "3:12 {name: x, path: a, index: b}", "path and index name two sources"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, rev: a}]\n', "bad-format", "3:12 {name: x, rev: a}", "no effect without git"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, editable: true}]\n', "bad-format", "3:12 {name: x, editable: true}", "editable needs path"),
        ('gpu: L4\npython: "3.12"\npackages: [{name: x, url: https://a/x.whl}]\n', "bad-format", "3:12 {name: x, url: https://a/x.whl}", "names a URL (`url`)"),
        ('gpu: L4\npython: "3.12"\npackages: [.]\n', "bad-format", "3:12 .", "write {name: NAME, path: .}"),
        ("gpu: L4\npython: '3.12'\npackages: ['.[train]']\n", "bad-format", "3:12 '.[train]'", "path: ., extras: [train]"),
        ('gpu: L4\npython: "3.12"\npackages: [{version: ">=1"}]\n', "missing-key", "3:12 {version: \">=1\"}", "name: torch"),
        ("gpu: L4\npython: 3.10\npackages: [torch]\n", "types-lost", "2:9 3.10", "3.1."),
        ("gpu: L4\npython: 3\npackages: [torch]\n", "types-lost", "2:9 3", '"3.12"'),
        ('gpu: L4\npython: "3.11.7"\npackages: [torch]\n', "bad-format", '2:9 "3.11.7"', "two parts"),
        ("gpu: L4\npackages: [torch]\n", "missing-key", "1:1 gpu", 'python: "3.12"'),
        (OK + "cuda: 12.8\n", "types-lost", "4:7 12.8", '"12.8"'),
        (OK + "cuda: cu128\n", "bad-format", "4:7 cu128", "CUDA version"),
        (OK + "targets: [here]\n", "wrong-type", "4:10 [here]", "targets: {local: {kind: local}}"),
        (OK + "targets: {here: local}\n", "wrong-type", "4:17 local", "kind: local"),
        (OK + "targets: {here: {manager: uv}}\n", "missing-key", "4:11 here", "kind: local"),
        (OK + "targets: {here: {kind: lokal}}\n", "not-a-choice", "4:24 lokal", "did you mean local"),
        (OK + "targets: {here: {kind: local, manger: uv}}\n", "unknown-key", "4:31 manger", "did you mean manager"),
        (OK + "targets: {here: {kind: local, manager: pip}}\n", "not-a-choice", "4:40 pip", "uv, conda"),
        (OK + "targets: {local: {kind: local, manager: pip}}\n", "not-a-choice", "4:41 pip", "uv, conda"),
        (OK + "targets: {w: {kind: workbench, zones: [a]}}\n", "missing-key", "4:11 w", "project: my-project"),
        (OK + "targets: {Bad Name: {kind: local}}\n", "bad-format", "4:11 Bad Name", "lowercase"),
        (OK + "targets: {}\n", "out-of-range", "4:10 {}", "at least"),
        (OK + "env: {A: 1}\n", "types-lost", "4:10 1", "quotes"),
        (OK + "env: {A: true}\n", "types-lost", "4:10 true", "a boolean"),
        (OK + "env: [A=1]\n", "wrong-type", "4:6 [A=1]", "env: {"),
        (OK + "env: {1A: x}\n", "bad-format", "4:7 1A", "a variable name"),
        (OK + "apiVersion: provision/v2\n", "not-a-choice", "4:13 provision/v2", "provision/v1"),
        (OK + "platforms: [linux]\n", "not-a-choice", "4:13 linux", "linux-x86_64"),
        (OK + "platforms: [1]\n", "not-a-choice", "4:13 1", "linux-x86_64"),
        (OK + "cost: {limit_per_hour: '3'}\n", "wrong-type", "4:24 '3'", "write 3"),
        (OK + "cost: {}\n", "bad-format", "4:7 {}", "limit_per_run"),
        (OK + "cost: {limit_per_run: 0}\n", "out-of-range", "4:23 0", "more than 0"),
        (OK + "cost: {limit_per_hour: -1}\n", "out-of-range", "4:24 -1", "more than 0"),
        (OK + "secrets: {T: abc}\n", "secret-written-out", "4:14 abc", "env: HF_TOKEN"),
        (OK + "secrets: {T: {value: abc}}\n", "secret-written-out", "4:22 abc", "env: HF_TOKEN"),
        (OK + "secrets: {T: {evn: HF_TOKEN}}\n", "unknown-key", "4:15 evn", "did you mean env"),
        (OK + "secrets: {T: {}}\n", "bad-format", "4:14 {}", "at least one"),
        (OK + "training: {precision: bf61}\n", "not-a-choice", "4:23 bf61", "bf16"),
        (OK + "training: {precision: 16}\n", "not-a-choice", "4:23 16", "bf16"),
        (OK + "training: {batch_size: '4'}\n", "wrong-type", "4:24 '4'", "write 4"),
        (OK + "training: {batch_size: 4.5}\n", "wrong-type", "4:24 4.5", "whole number"),
        (OK + "training: {torch_compile: yes}\n", "wrong-type", "4:27 yes", "write true"),
        (OK + "training: {torch_compile: perhaps}\n", "wrong-type", "4:27 perhaps", "true or false"),
        (OK + "training: {sequence_length: 0}\n", "out-of-range", "4:29 0", "at least 1"),
        (OK + "requires: {ram: 16}\n", "types-lost", "4:17 16", "16GiB"),
        (OK + "requires: {ram: 16G}\n", "bad-format", "4:17 16G", "a size with a unit"),
        (OK + "requires: {driver: new}\n", "bad-format", "4:20 new", ">=580"),
        (OK + "indexes: {p: {url: 'https://u:p@host/'}}\n", "bad-format", "4:20 'https://u:p@host/'", "UV_INDEX"),
        (OK + "precision: bf16\n", "unknown-key", "4:1 precision", "belongs under training"),
        (OK + "training: {cuda: none}\n", "unknown-key", "4:12 cuda", "at the top"),
        (OK + "zones: [a]\n", "unknown-key", "4:1 zones", "targets.NAME"),
        (OK + "dependencies: []\n", "unknown-key", "4:1 dependencies", "packages"),
        (OK + "system-packages: []\n", "unknown-key", "4:1 system-packages", "system_packages"),
        (OK + "zzz: 1\n", "unknown-key", "4:1 zzz", "apiVersion"),
        (OK + "x: &x 1\nenv: {A: *x, B: *x}\n", "types-lost", "5:10 *x", "quotes"),
        (OK + "requires: {<<: {rom: 1GiB}}\n", "unknown-key", "4:17 rom", "ram"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_finding_at_its_characters(lint, text, name, place, words):
    linted = lint(text)
    assert linted.spec is None
    finding = linted.one(name)
    assert linted.at(finding) == place
    assert words in f"{finding.message} {finding.why} {finding.help}"
    assert [other for other in linted.names if other not in (name, "unknown-key")] == []


@pytest.mark.parametrize(
    ("text", "kind", "edited"),
    [
        ("gpu: L4\npython: 3.10\npackages: [torch]\n", SAFE, 'python: "3.10"'),
        (OK + "cuda: 12.80  # why\n", SAFE, 'cuda: "12.80"  # why'),
        (OK + "env: {A: 1, B: x}\n", SAFE, 'env: {A: "1", B: x}'),
        (OK + "env:\n  A: true\n", SAFE, '  A: "true"'),
        (OK + "env:\n  A: 0o17\n", SAFE, '  A: "0o17"'),
        (OK + "training: {batch_size: '4'}\n", SAFE, "training: {batch_size: 4}"),
        (OK + "training: {torch_compile: Yes}\n", SAFE, "training: {torch_compile: true}"),
        (OK + "training: {precision: BF16}\n", SAFE, "training: {precision: bf16}"),
        (OK + "training: {precision: bf61}\n", UNSAFE, "training: {precision: bf16}"),
        (OK + "system-packages: []\n", SAFE, "system_packages: []"),
        (OK + "trainning: {}\n", UNSAFE, "training: {}"),
        ("gpu: L4\npython: '3.12'\npackages: torch\n", SAFE, "packages: [torch]"),
        ("gpu: L4\npython: '3.12'\npackages: torch==2.13\n", SAFE, 'packages: ["torch==2.13"]'),
        ("gpu: L4\npython: '3.11.7'\npackages: [torch]\n", UNSAFE, 'python: "3.11"'),
        (OK + "cuda: cu128\n", UNSAFE, 'cuda: "12.8"'),
        (OK + "apiVersion: provision/v2\n", UNSAFE, 'apiVersion: "provision/v1"'),
    ],
)
def test_a_fix_changes_only_what_it_names_and_makes_the_spec_good(folder, text, kind, edited):
    linted = folder.lint(text)
    (finding,) = linted.findings
    assert finding.fix.applicability is kind
    (new,) = linted.source.apply_fixes([finding.fix]).values()
    (changed,) = set(new.splitlines()) - set(text.splitlines())
    assert changed == edited
    assert folder.lint(new).findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "gpu: L4\npython: 3\npackages: [torch]\n",
        OK + "cuda: false\n",
        OK + "secrets: {T: {env: 1}}\n",
        OK + "x: &x 1\nenv: {A: *x}\n",
        OK + "training: {batch_size: '04'}\n",
        OK + "cuda: none\nCUDA: none\n",
        "gpu: 4\npython: '3.12'\npackages: [torch]\n",
    ],
)
def test_no_fix_where_there_is_no_telling(lint, text):
    assert all(finding.fix is None for finding in lint(text).findings)


def test_findings_about_one_aliased_text_are_one(lint):
    linted = lint(
        OK + "requires: &r {rom: 1GiB}\ntargets:\n  a: {kind: local, requires: *r}\n  b: {kind: "
        "local, requires: *r}\n"
    )
    assert linted.names == ["unknown-key"]


def test_findings_about_like_texts_are_not(lint):
    assert lint(OK + "env: {A: 1, B: 1}\n").names == ["types-lost", "types-lost"]


def test_members_of_a_union_are_one_finding(lint):
    assert lint(OK + "cost: {limit_per_hour: []}\n").names == ["wrong-type"]


SECRET = "correct-horse-battery"
TOKEN = "hf_" + "a1B2" * 8


@pytest.mark.parametrize(
    "text",
    [
        f"secrets: {{T: {SECRET}}}",
        f"secrets: {{T: {{secret: {SECRET}}}}}",
        f"secrets: {{T: {{env: {SECRET}}}}}",
        f"secrets: [{SECRET}]",
        f"secrets: {SECRET}",
        f"env: [{SECRET}]",
        f"env: {SECRET}",
        f'env: {{A: "{SECRET}\\0"}}',
        f"cuda: {TOKEN}",
        f"training: {{precision: {TOKEN}}}",
        f"targets: {{a: {{kind: {TOKEN}}}}}",
        f"{TOKEN}: 1",
        f"indexes: {{p: {{url: 'https://user:{SECRET}{'x' * 99}@host/'}}}}",
    ],
)
def test_no_message_repeats_a_secret(lint, text):
    linted = lint(OK + text + "\n")
    assert linted.findings
    for finding in linted.findings:
        said = " ".join(
            (finding.message, finding.why, finding.help, str(finding.fix), str(finding.related))
        )
        assert SECRET not in said
        assert TOKEN not in said


def test_secrets_written_out_are_named_for_whoever_shows_lines(lint):
    source = lint(
        OK + f"secrets: {{A: {SECRET}, B: {{env: HF_TOKEN}}, C: {{secret: "
        f"projects/p/secrets/s/versions/3}}, D: {{secret: {TOKEN}}}}}\n"
    ).source
    assert source.literal_secrets() == (SECRET, TOKEN)
    source = lint(
        OK + f"targets: {{here: {{kind: local, secrets: {{A: {SECRET}, B: {{env: HF}}}}}}}}\n"
    ).source
    assert source.literal_secrets() == (SECRET,)


def test_numbers_under_env_are_not_repeated(lint):
    finding = lint(OK + "env: {PIN: 90210}\n").one("types-lost")
    assert "90210" not in finding.message + finding.why + finding.help


def test_many_mistakes_are_cut_short(lint):
    linted = lint(OK + "env:\n" + "".join(f"  A{n}: {n}\n" for n in range(150)))
    assert len(linted.findings) == 101
    assert "50 more" in linted.one("more-findings").message
    assert len(lint("gpu: L4\npython: '3.12'\npackages:\n" + "- a: 1\n" * 150).findings) == 101
    assert len(lint(OK + "env:\n" + "".join(f"  A{n}: {n}\n" for n in range(100))).findings) == 100


def test_a_broken_text_is_not_validated(lint):
    assert lint("a: [\n").names == ["syntax"]


def test_every_pattern_of_the_language_has_words_and_a_matching_example():
    patterns = set(re.findall(r"'pattern': '((?:[^'\\]|\\.)*)'", str(json_schema({}))))
    patterns = {pattern.encode().decode("unicode_escape") for pattern in patterns}
    assert patterns == set(FORMAT_DESCRIPTIONS)
    for pattern, (_, example) in FORMAT_DESCRIPTIONS.items():
        assert re.fullmatch(pattern, example.strip('"')), pattern


def test_every_example_of_a_key_is_right(lint):
    for key, looks in KEY_EXAMPLES.items():
        example = looks.split(", or ")[0]
        if key in Spec.model_fields:
            spec = "".join(
                line for line in OK.splitlines(keepends=True) if not line.startswith(key + ":")
            )
            assert lint(spec + example + "\n").findings == (), key
    nested = "training: {model: {parameters: 1.1B, layers: 22}, arguments: {warmup_steps: 10}}\n"
    assert KEY_EXAMPLES["model"] in nested
    assert KEY_EXAMPLES["arguments"] in nested
    assert lint(OK + nested).findings == ()


def test_every_other_word_leads_to_a_key():
    for word, key in KEY_SYNONYMS.items():
        assert find_key_parent(key, REGISTRY) is not None, word
        assert word not in Spec.model_fields


def test_keys_at_a_place_follow_the_kind_of_the_target():
    data = {
        "targets": {"a": {"kind": "colab"}, "b": {"kind": "local"}, "c": {}},
        "packages": [{"name": "x"}],
        "env": {"A": "b"},
    }
    assert "runtime" in keys_at(("targets", "a"), data, REGISTRY)
    assert "runtime" not in keys_at(("targets", "b"), data, REGISTRY)
    assert keys_at(("targets", "c"), data, REGISTRY) == ()
    assert keys_at(("env",), data, REGISTRY) == ()
    assert "count" in keys_at(("targets", "a", "gpu"), data, REGISTRY)
    assert "extras" in keys_at(("packages", 0), data, REGISTRY)


@pytest.mark.parametrize(
    ("pattern", "text", "meant"),
    [
        (r"^\d+(\.\d+)?\s?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$", "16gb", "16GiB"),
        (r"^\d+(\.\d+)?[KMBT]$", "350m", "350M"),
        (r"^(auto|none|\d+\.\d+)$", "CUDA 12.8", "12.8"),
        (r"^(auto|none|\d+\.\d+)$", "None", "none"),
        (r"^\d+[smhd]$", "30 m", None),
    ],
)
def test_a_format_is_respelled_where_the_meaning_is_plain(pattern, text, meant):
    assert correct_format(pattern, text) == meant


def test_places_are_routes_into_the_spec(lint):
    finding = lint(OK + "targets: {here: {kind: local, manger: uv}}\n").one("unknown-key")
    assert finding.where == RouteLocation(("targets", "here", "manger"), RoutePart.KEY)


WORKBENCH = (
    OK
    + "targets:\n  wb:\n    kind: workbench\n    project: my-project\n    zones: [us-central1-a]\n"
)


@pytest.mark.parametrize(
    "line",
    [
        "boot_disk: {size: 200GB, type: hyperdisk-balanced, kms_key: any}",
        "access: {mode: single-user, owner: me@example.com}",
        "access: {mode: service-account}",
        "mirrors: {pypi: 'https://packages.example.com/simple'}",
        "labels: {team: ''}\n    tags: [a]\n    metadata: {a: b}",
    ],
)
def test_an_instance_takes_its_parts(lint, line):
    assert lint(WORKBENCH + f"    {line}\n").findings == ()


@pytest.mark.parametrize(
    "line",
    [
        "boot_disk: {type: floppy}",
        "boot_disk: {size: 200}",
        "access: {mode: single-user}",
        "access: {owner: me@example.com}",
        "access: {mode: service-account, owner: me@example.com}",
        "mirrors: {pypi: packages.example.com}",
        "mirrors: {pypi: 'https://me:secret@packages.example.com/simple'}",
        "labels: {team: 1}",
        "spot: true",
        "public_ip: 'no'",
    ],
)
def test_an_instance_refuses_what_it_is_not(lint, line):
    (finding,) = lint(WORKBENCH + f"    {line}\n").findings
    assert "secret" not in finding.message


def test_an_instance_is_safe_unless_it_says_otherwise():
    target = Spec.model_validate(
        {
            "gpu": "L4",
            "python": "3.12",
            "packages": [],
            "targets": {"wb": {"kind": "workbench", "project": "p", "zones": ["z"]}},
        }
    )
    made = target.targets["wb"]
    assert (
        made.public_ip,
        made.managed_euc,
        made.gpu_driver,
        made.shielded.vtpm,
        made.shielded.integrity_monitoring,
    ) == (False, False, True, True, True)
    assert (made.service_account, made.metadata, made.tags) == (None, {}, [])


@pytest.mark.parametrize(
    "used",
    [
        "Spec.model_validate(json.load(open('spec.yaml'))).for_target('here').model_dump_json()",
        "provision.cli.run_cli(['lint', 'spec.yaml'])",
    ],
)
@pytest.mark.parametrize("targets", [{}, {"targets": {"here": {"kind": "local"}}}])
def test_plugins_of_pydantic_are_not_loaded(tmp_path, used, targets):
    spec = {"gpu": "none", "python": "3.11", "packages": [], **targets}
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    used = used if targets else used.replace("'here'", "'local'")
    held = "assert l._plugins is None; assert 'PYDANTIC_DISABLE_PLUGINS' not in os.environ"
    imported = "import json, os, provision.cli, pydantic.plugin._loader as l"
    program = f"{imported}; from provision.spec import Spec; {used}; {held}"
    environment = {
        key: value for key, value in os.environ.items() if key != "PYDANTIC_DISABLE_PLUGINS"
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0
