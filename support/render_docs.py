"""Writes the reference pages below docs/ from the program; `--check` lists those that are stale.

The pages of single rules and commands (docs/reference/rules/, docs/reference/commands/) are not
under version control: docs/reference/rules.md and commands.md list them, and `provision explain`
and `--help` print them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from provision.cli.app import SECTIONS, app
from provision.cli.help import HelpContext
from provision.commands.schema import schema_text
from provision.facts import load_facts
from provision.rules import RULES, load_notebook_rules, render_rule_page
from provision.schema import json_schema
from provision.source.findings import FINDING_KINDS
from provision.source.vocabulary import FORMAT_DESCRIPTIONS

sys.path.insert(0, str(Path(__file__).parent))
from terminal_svg import THEMES, record, render
from window_page import window_page

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9._/:-]*|\d+[A-Za-z]+")
DOCS = Path(__file__).parents[1] / "docs"
DEMO_COMMANDS = (
    "check train.ipynb --on colab-t4 --on workbench-t4 --output-format concise",
    "diff colab.json workbench.json --error trace.txt",
)
RULE_PAGES, COMMAND_PAGES = "reference/rules", "reference/commands"
"""Folders below docs/ that are not under version control."""
NOTE = "<!-- Written by support/render_docs.py (make docs): change the program, not this page. -->"

PARTS = {
    "Gpu": "gpu",
    "Package": "packages[]",
    "CondaPackage": "conda_packages[]",
    "Index": "indexes.NAME",
    "SecretReference": "secrets.NAME",
    "MachineRequirements": "requires",
    "Training": "training",
    "TrainingModel": "training.model",
    "TargetTraining": "targets.NAME.training",
    "Code": "code",
    "TrainingData": "training.data",
    "Cost": "cost",
    "Verify": "verify",
    "Expect": "verify.expect",
    "LocalTarget": "targets.NAME, kind: local",
    "ColabTarget": "targets.NAME, kind: colab",
    "ColabEnterpriseTarget": "targets.NAME, kind: colab-enterprise",
    "DataDisk": "targets.NAME.data_disk, kind: colab-enterprise",
    "VertexJobTarget": "targets.NAME, kind: vertex-job",
    "JobCapacity": "targets.NAME.capacity, kind: vertex-job",
    "JobDisk": "targets.NAME.boot_disk, kind: vertex-job",
    "WorkbenchTarget": "targets.NAME, kind: workbench",
    "Disk": "targets.NAME.boot_disk, targets.NAME.data_disk",
    "Access": "targets.NAME.access",
    "Shielded": "targets.NAME.shielded",
}
"""Each part of a spec and its route."""

EXAMPLES = """\
Gpu: {type: A100-80GB, count: 2}
Package: {name: torch, version: "==2.13.*", extras: [opt-einsum], marker: sys_platform == 'linux',
  index: private, build: false, source: pypi, path: ./libs/ours, editable: false,
  git: "https://github.com/huggingface/trl", rev: v0.29.0, subdirectory: packages/trl}
CondaPackage: {name: ffmpeg, version: ">=6", channel: conda-forge}
Index: {url: "https://packages.example.com/simple"}
SecretReference: {secret: projects/my-project/secrets/hf/versions/3, env: HF_TOKEN, colab: HF_TOKEN}
MachineRequirements: {ram: 16GiB, disk: 50GiB, shm: 1GiB, vram: 16GiB, driver: ">=580",
  compute_capability: ">=8.0"}
Training:
  {framework: hf-trainer, backend: jax, precision: bf16, model: {parameters: 1.1B}, method: full,
  batch_size: 4, sequence_length: 1024, optimizer: adamw_torch,
  gradient_checkpointing: true, torch_compile: false, strategy: none, launcher: auto,
  dataloader_workers: 4, data: {in_memory: 8GiB}, arguments: {warmup_steps: 10}}
TrainingModel:
  {id: meta-llama/Llama-3.1-8B, parameters: 1.1B, hidden_size: 2048, layers: 22}
TargetTraining:
  {framework: keras, backend: torch, precision: fp16, model: {layers: 12}, method: lora,
  batch_size: 1, sequence_length: 512, optimizer: adafactor,
  gradient_checkpointing: true, torch_compile: true, strategy: ddp, launcher: torchrun,
  dataloader_workers: 2, data: {in_memory: 1GiB}, arguments: {warmup_steps: 1}}
TrainingData: {in_memory: 8GiB}
Cost: {limit_per_hour: 3.0, limit_per_run: 20}
Code: {path: src, exclude: [data, "*.log"], git: "https://github.com/our-team/jobs", rev: v1.4,
  subdirectory: train, clone: false}
Verify: {tier: quick, timeout: 30m, command: [python, train.py, --max_steps, "2"],
  expect: {files: [model.txt]}}
Expect: {exit: 0, files: [$PROVISION_PATH_OUTPUT/model.safetensors], stdout: "loss [0-9.]+"}
LocalTarget: {kind: local, manager: uv, kernel: true, gpu: L4, cuda: "12.8", paths: {data:
  /data/small}, requires: {ram: 8GiB},
  env: {HF_HOME: /data/hf}, secrets: {HF_TOKEN: {env: MY_HF_TOKEN}}, training: {batch_size: 1}}
ColabTarget:
  {kind: colab, runtime: "2026.07", via: browser, isolation: system, shape: high,
  bucket: gs://my-bucket/provision, payload: bucket, gpu: T4, cuda: "12.8",
  paths: {data: /content/data}, requires: {ram: 8GiB},
  env: {HF_HOME: /content/hf}, secrets: {HF_TOKEN: {colab: MY_TOKEN}}, training: {precision: fp16}}
ColabEnterpriseTarget:
  {kind: colab-enterprise, project: my-project, region: us-central1, machine_type: g2-standard-8,
  isolation: venv, gpu: L4, cuda: "12.8",
  data_disk: {size: 200GiB, type: ssd}, network: my-network, subnet: my-subnet, internet: false,
  idle_shutdown: 60m, end_user_credentials: false, secure_boot: true,
  reservation: projects/my-project/zones/us-central1-a/reservations/my-reservation,
  bucket: "gs://my-bucket/provision", max_duration: 45m,
  service_account: trainer@my-project.iam.gserviceaccount.com,
  paths: {data: /content/data}, requires: {ram: 8GiB},
  env: {HF_HOME: /content/hf}, secrets: {HF_TOKEN: null}, training: {precision: fp16}}
DataDisk: {size: 200GiB, type: ssd}
VertexJobTarget:
  {kind: vertex-job, project: my-project, regions: [us-central1, europe-west4],
  bucket: {us-central1: "gs://my-us/provision", europe-west4: "gs://my-eu/provision"},
  image: "python@sha256:0000000000000000000000000000000000000000000000000000000000000000",
  environment: install, replicas: 2, restarts: 3, machine_type: g2-standard-8, capacity: spot,
  boot_disk: {size: 200GiB},
  max_duration: 45m, service_account: trainer@my-project.iam.gserviceaccount.com,
  network: projects/123456789/global/networks/my-network,
  gpu: L4, cuda: "12.8", paths: {data: /gcs/my-bucket/data}, requires: {ram: 8GiB},
  env: {HF_HOME: /tmp/hf}, secrets: {HF_TOKEN: null}, training: {strategy: ddp}}
JobCapacity: {strategy: spot, flex_start: 2h, persistent_resource: mine,
  reservation: projects/my-project/zones/us-central1-a/reservations/mine}
JobDisk: {size: 200GiB, type: standard}
WorkbenchTarget:
  {kind: workbench, project: my-project, zones: [us-central1-a, us-central1-b], machine_type:
  g2-standard-8,
  image: workbench-instances-2603-20261004-2157-rc0, gpu_driver: true, reservation: my-reservation,
  boot_disk: {size: 150GB},
  data_disk: {size: 500GB, type: ssd}, network: my-network, subnet: my-subnet, public_ip: false,
  nat: false,
  mirrors: {pypi: "https://packages.example.com/simple"}, service_account:
  trainer@my-project.iam.gserviceaccount.com,
  access: {mode: single-user, owner: me@example.com}, managed_euc: false, shielded: {secure_boot:
  true}, labels: {team: research},
  tags: [no-ingress], metadata: {notebook-disable-downloads: "true"}, bucket:
  "gs://my-bucket/provision", idle_shutdown: 60m, max_lifetime: 8h,
  on_failure: stop, gpu: L4, cuda: "12.8", paths: {data: /home/jupyter/data}, requires: {ram:
  16GiB}, env: {HF_HOME: /home/jupyter/hf}, training: {batch_size: 8},
  secrets: {HF_TOKEN: {secret: projects/my-project/secrets/hf/versions/3}}}
Disk: {size: 500GB, type: ssd, kms_key:
  projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key}
Access: {mode: single-user, owner: me@example.com}
Shielded: {secure_boot: true, vtpm: true, integrity_monitoring: true}
"""
"""Every key of every part with a value."""

WHOLE = """\
apiVersion: provision/v1
name: hf-trainer
extends: builtin:huggingface-trainer
gpu: L4
cuda: "12.8"
python: "3.11"
packages: [torch==2.11.*, "transformers[torch]>=5.13", {name: my-lib, index: private}]
indexes: {private: {url: "https://packages.example.com/simple"}}
exclude_newer: 2026-11-01
platforms: [linux-x86_64]
system_packages: [git]
env: {TOKENIZERS_PARALLELISM: "false"}
secrets: {HF_TOKEN: {env: HF_TOKEN, colab: HF_TOKEN}}
paths: {data: /data/set, output: /data/out}
requires: {ram: 16GiB}
code: {path: src, exclude: [data]}
training: {precision: bf16}
cost: {limit_per_hour: 3.0}
verify: {tier: quick, command: [python, train.py, --max_steps, "2"]}
targets: {local: {kind: local}}
"""
OTHER_FIELDS = 'cuda_toolkit: "12.8"\nconda_packages: [ffmpeg]\n'
"""Fields that the target of the whole example refuses."""
"""A spec with every top-level key that a local target made by uv can have."""


def pages() -> dict[str, str]:
    """Return the pages under version control by their paths below docs/."""
    return {
        "spec.schema.json": schema_text(),
        "reference/spec.md": spec_page(json_schema({})),
        "reference/findings.md": findings_page(),
        "reference/rules.md": rules_page(),
        "reference/commands.md": commands_page(),
        "reference/windows.md": window_page(load_facts(), NOTE),
        **pictures(),
    }


def pictures() -> dict[str, str]:
    """Return the terminal recordings of the README by their paths below docs/."""
    recording = record(DEMO_COMMANDS, DOCS.parent / "examples/demo")
    return {f"images/demo-{theme}.svg": render(recording, theme) for theme in THEMES}


def unversioned_pages() -> dict[str, str]:
    """Return the page of each rule and of each command by its path below docs/."""
    every_rule = (*RULES, *load_notebook_rules())
    rules = {
        f"{RULE_PAGES}/{rule.id}.md": f"{NOTE}\n\n{render_rule_page(rule)}" for rule in every_rule
    }
    commands = {f"{COMMAND_PAGES}/{name}.md": command_page(name) for name in app.commands}
    return {**rules, **commands}


def spec_page(schema: dict[str, Any]) -> str:
    """Return the reference of the spec language."""
    definitions = schema["definitions"]
    parts = [
        NOTE,
        "# The spec language, provision/v1",
        INTRODUCTION.strip(),
        "## The top of a spec",
        table(schema, top_values(WHOLE) | top_values(OTHER_FIELDS), definitions),
    ]
    parts += ["Every key, as it may be written:", f"```yaml\n{WHOLE.strip()}\n```"]
    examples = yaml.safe_load(EXAMPLES)
    for name, route in PARTS.items():
        part = mapping_form(definitions[name])
        parts += [
            f"## {name}",
            f"`{route}`",
            sentence(part["description"]),
            table(
                part, {key: flow_yaml(value) for key, value in examples[name].items()}, definitions
            ),
        ]
    for name, route in (("Platform", "platforms[]"), ("Precision", "training.precision")):
        listed = ", ".join(code(value) for value in definitions[name]["enum"])
        parts += [
            f"## {name}",
            f"`{route}`",
            f"{sentence(definitions[name]['description'])} One of: {listed}.",
        ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """
A spec is a YAML 1.2 mapping. `gpu`, `python` and `packages` are required; every other key has a \
default. Unknown keys are errors.
Nothing is converted silently: `python: 3.10` is an error, because YAML reads a number there.

- A target may have its own `gpu`, `cuda`, `paths`, `requires`, `env`, `secrets` and `training`, \
but never its own `packages` or `python`. Maps merge, and null removes.
- With `extends`, maps merge, packages merge by name, other lists replace, and null removes.
- [limits.md](limits.md) lists the keys that have an effect on a local target, and those that \
are refused.
- All findings about a spec are listed in [findings.md](findings.md) (text, shape, `extends`) \
and [rules.md](rules.md) (content).
- As JSON Schema, draft 7: [spec.schema.json](../spec.schema.json), or `provision schema`. \
`provision init` writes it as provision.schema.json next to a new spec, for editors.
"""


def table(part: dict[str, Any], examples: dict[str, str], definitions: dict[str, Any]) -> str:
    """Return a table with a row for each key of a part of the schema.

    Args:
        part: the schema of the part.
        examples: a value of each key, as YAML.
        definitions: the parts that it may refer to, by name.
    """
    rows = ["| key | type | default | what it is | example |", "|---|---|---|---|---|"]
    for key, field in sorted(part["properties"].items(), key=lambda item: item[0] != "kind"):
        default = "required"
        if key not in part.get("required", ()):
            default = code(flow_yaml(field.get("default")))
        rows.append(
            f"| `{key}` | {cell(type_text(field))} | {default} | "
            f"{cell(field_description(field, definitions))} | {code(examples[key])} |"
        )
    return "\n".join(rows)


def type_text(field: dict[str, Any]) -> str:
    """Return the type of a field in words, with links to the parts."""
    if "const" in field:
        return code(str(field["const"]))
    if "enum" in field:
        return " or ".join(code(str(value)) for value in field["enum"])
    if part := referenced_part(field):
        return f"[{part}](#{part.lower()})"
    if members := field.get("anyOf") or field.get("oneOf"):
        types = (type_text(member) for member in members if member.get("type") != "null")
        return " or ".join(dict.fromkeys(types))
    if field.get("type") == "array":
        return f"list of: {type_text(field['items'])}"
    if field.get("type") == "object":
        return mapping_text(field)
    return scalar_text(field)


def mapping_text(field: dict[str, Any]) -> str:
    """Return the type of a mapping with free keys in words."""
    for pattern, value in field.get("patternProperties", {}).items():
        return f"mapping; keys: {FORMAT_DESCRIPTIONS[pattern][0]}; values: {type_text(value)}"
    return "mapping"


SCALAR_TYPES = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
}
BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


def scalar_text(field: dict[str, Any]) -> str:
    """Return the type of a scalar in words: its format, or its bounds."""
    if "pattern" in field:
        return FORMAT_DESCRIPTIONS[field["pattern"]][0]
    bounds = [f"{text} {field[key]}" for key, text in BOUNDS.items() if key in field]
    return ", ".join([SCALAR_TYPES.get(field.get("type", ""), "any value"), *bounds])


def referenced_part(field: dict[str, Any]) -> str:
    """Return the name of the part that a field refers to, or ""."""
    reference = field.get("$ref") or (field.get("allOf") or [{}])[0].get("$ref") or ""
    return str(reference).rsplit("/", 1)[-1]


def field_description(field: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return the description of a field, or else that of the part it refers to."""
    if "description" in field:
        return sentence(field["description"])
    part = referenced_part(field)
    # A key with a single value has no description: only `kind` is one.
    return sentence(definitions[part]["description"]) if part else KIND_DESCRIPTION


KIND_DESCRIPTION = "Says which kind of target this is."


def mapping_form(part: dict[str, Any]) -> dict[str, Any]:
    """Return the mapping form of a part that may also be written as a string."""
    forms = [form for form in part.get("anyOf", ()) if "properties" in form]
    return {**forms[0], "description": part["description"]} if forms else part


def top_values(example: str) -> dict[str, str]:
    """Return the YAML text of each key of an example with one key per line."""
    lines = (line.partition(": ") for line in example.strip().splitlines())
    return {key: value for key, _, value in lines}


def flow_yaml(value: Any) -> str:
    """Return a value as YAML on one line without its empty parts; "" for an empty value."""
    if isinstance(value, dict):
        parts = [f"{key}: {text}" for key, item in value.items() if (text := flow_yaml(item))]
        return "{" + ", ".join(parts) + "}" if parts else ""
    if isinstance(value, list):
        return "[" + ", ".join(map(flow_yaml, value)) + "]" if value else ""
    if value is None or value == "":
        return ""
    is_word = isinstance(value, str) and _PLAIN.fullmatch(value)
    if is_word and isinstance(yaml.safe_load(value), str):
        return value
    return json.dumps(value)


def findings_page() -> str:
    """Return the table of findings about text, shape and `extends`."""
    intro = (
        "Findings about the text of a spec (YML), its shape (SPC), what it extends (REF), "
        "comments that accept findings (SUP), and the policy of a project (POL). Findings about "
        "its meaning are [rules](rules.md)."
    )
    rows = ["| id | name | severity | what it means |", "|---|---|---|---|"]
    rows += (
        f"| {kind.id} | {kind.name} | {kind.severity} | {cell(kind.explanation)} |"
        for kind in FINDING_KINDS
    )
    return "\n\n".join([NOTE, "# Findings", intro, "\n".join(rows)]) + "\n"


def rules_page() -> str:
    """Return the table of rules, each with an anchor."""
    intro = (
        "What `provision lint` reports about the meaning of a spec. The rules are checked on "
        "the spec, and again on every resolved set; those with NTB are "
        "[about notebooks](../how-to/lint-notebooks.md). "
        "`severity` is the highest severity of a rule; `unknown` means that the facts "
        "do not contain the value in the spec. "
        "Findings about text and shape are in [findings.md](findings.md)."
    )
    pages = (
        "`provision explain PKG001` prints the page of a rule: what it does, why, how to fix the "
        "finding, with examples and sources. `make docs` writes all pages to docs/reference/rules."
    )
    rows = ["| id | name | severity | what is wrong |", "|---|---|---|---|"]
    for rule in sorted((*RULES, *load_notebook_rules()), key=lambda rule: rule.id):
        anchor = f'<a id="{rule.id.lower()}"></a>{rule.id}'
        rows.append(f"| {anchor} | {rule.name} | {rule.severity} | {cell(rule.summary)} |")
    return "\n\n".join([NOTE, "# Rules", intro, pages, "\n".join(rows)]) + "\n"


def commands_page() -> str:
    """Return the table of commands, in the sections of the help."""
    intro = (
        "`provision COMMAND --help` prints the options of a command, with examples. `make docs` "
        f"writes these pages to docs/{COMMAND_PAGES}. Before the command: `-v` and `-vv` log to "
        "stderr, `--log-file PATH` appends the log to a file, `--version` prints the version."
    )
    parts = [NOTE, "# Commands", intro]
    for section, names in SECTIONS.items():
        rows = ["| command | what it does |", "|---|---|"]
        for name in names:
            usage = app.commands[name].get_usage(command_context(name)).removeprefix("Usage: ")
            summary = cell(app.commands[name].get_short_help_str(200))
            rows.append(f"| {code(' '.join(usage.split()))} | {summary} |")
        parts += [f"## {section.capitalize()}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def command_page(name: str) -> str:
    """Return the help of a command and of its subcommands."""
    command = app.commands[name]
    commands = {name: command}
    if isinstance(command, click.Group):
        commands |= {f"{name} {sub}": command.commands[sub] for sub in sorted(command.commands)}
    parts = [NOTE, f"# provision {name}"]
    for path, part in commands.items():
        heading = [f"## provision {path}"] if path != name else []
        parts += [*heading, f"```text\n{part.get_help(command_context(path)).rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def command_context(path: str) -> click.Context:
    """Return the context in which a command renders its help, 100 columns wide."""
    return HelpContext(
        click.Command(path),
        info_name=f"provision {path}",
        terminal_width=100,
        max_content_width=100,
        help_option_names=["-h", "--help"],
    )


def sentence(text: str) -> str:
    """Return a docstring as one paragraph that ends in a full stop."""
    text = " ".join(text.split())
    return text if text.endswith((".", ":")) else text + "."


def cell(text: str) -> str:
    """Return text for a cell of a table; outside of code, `<` is escaped."""
    parts = text.replace("|", "\\|").split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def code(text: str) -> str:
    """Return text as code in a cell."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def stale_pages(folder: Path, expected: dict[str, str]) -> list[str]:
    """Return the paths of pages in a folder that are missing or differ; of pictures the text."""
    stale = []
    for name, text in expected.items():
        path = folder / name
        current = path.read_text(encoding="utf-8") if path.is_file() else ""
        if name.endswith(".svg"):
            is_stale = picture_text(current) != picture_text(text)
        else:
            is_stale = current != text
        if is_stale:
            stale.append(name)
    return sorted(stale)


def picture_text(svg: str) -> list[str]:
    """Return the words in a picture; another release of rich may draw them differently."""
    return re.sub(r"<style>.*?</style>|<[^>]*>", " ", svg, flags=re.DOTALL).split()


def write_pages(folder: Path) -> None:
    """Write every page whose text changed, and delete those of rules and commands that are gone."""
    expected = {**pages(), **unversioned_pages()}
    for name in (RULE_PAGES, COMMAND_PAGES):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for path in (folder / name).glob("*.md"):
            if f"{name}/{path.name}" not in expected:
                path.unlink()
    for name in stale_pages(folder, expected):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(expected[name], encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` exit 1 if a page under version control is stale."""
    if "--check" not in arguments:
        write_pages(DOCS)
        return 0
    stale = stale_pages(DOCS, pages())
    print("\n".join(["stale: run make docs", *stale]) if stale else "docs are up to date")
    return int(bool(stale))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
