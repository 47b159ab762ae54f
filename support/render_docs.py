"""Write the reference pages under docs/ from the program itself; `--check` only tells whether they
are up to date.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from provision.commands.schema import schema_text
from provision.rules import RULES, render_rule_page
from provision.schema import json_schema
from provision.source.findings import FINDING_KINDS
from provision.source.vocabulary import FORMAT_DESCRIPTIONS

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9._/:-]*|\d+[A-Za-z]+")
DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Written by support/render_docs.py (make docs): change the program, not this page. -->"

PARTS = {
    "Gpu": "gpu",
    "Package": "packages[]",
    "CondaPackage": "conda_packages[]",
    "Index": "indexes.NAME",
    "SecretReference": "secrets.NAME",
    "Requires": "requires",
    "Training": "training",
    "Model": "training.model",
    "Cost": "cost",
    "Verify": "verify",
    "LocalTarget": "targets.NAME, kind: local",
    "ColabTarget": "targets.NAME, kind: colab",
    "ColabEnterpriseTarget": "targets.NAME, kind: colab-enterprise",
    "WorkbenchTarget": "targets.NAME, kind: workbench",
    "Disk": "targets.NAME.boot_disk, targets.NAME.data_disk",
    "Access": "targets.NAME.access",
    "Shielded": "targets.NAME.shielded",
}
"""Each part of a spec and where it stands."""

EXAMPLES = """\
Gpu: {type: A100-80GB, count: 2}
Package: {name: torch, version: "==2.13.*", extras: [opt-einsum], marker: sys_platform == 'linux', index: private, build: false, source: pypi}
CondaPackage: {name: ffmpeg, version: ">=6", channel: conda-forge}
Index: {url: "https://packages.example.com/simple"}
SecretReference: {secret: projects/my-project/secrets/hf/versions/3, env: HF_TOKEN, colab: HF_TOKEN}
Requires: {ram: 16GiB, disk: 50GiB, shm: 1GiB, vram: 16GiB, driver: ">=580", compute_capability: ">=8.0"}
Training:
  {framework: hf-trainer, precision: bf16, model: {parameters: 1.1B}, method: full, batch_size: 4, sequence_length: 1024, optimizer: adamw_torch,
  gradient_checkpointing: true, torch_compile: false, strategy: none, launcher: auto, dataloader_workers: 4, arguments: {warmup_steps: 10}}
Model: {parameters: 1.1B, hidden_size: 2048, layers: 22}
Cost: {limit_per_hour: 3.0}
Verify: {tier: quick, timeout: 30m}
LocalTarget: {kind: local, manager: uv, kernel: true, gpu: L4, cuda: "12.8", paths: {data: /data/small}, requires: {ram: 8GiB}}
ColabTarget:
  {kind: colab, runtime: "2026.07", via: browser, isolation: system, shape: high, gpu: T4, cuda: "12.8", paths: {data: /content/data}, requires: {ram: 8GiB}}
ColabEnterpriseTarget:
  {kind: colab-enterprise, project: my-project, region: us-central1, machine_type: g2-standard-8, isolation: venv, gpu: L4, cuda: "12.8",
  paths: {data: /content/data}, requires: {ram: 8GiB}}
WorkbenchTarget:
  {kind: workbench, project: my-project, zones: [us-central1-a, us-central1-b], machine_type: g2-standard-8,
  image: workbench-instances-2603-20261004-2157-rc0, gpu_driver: true, reservation: my-reservation, boot_disk: {size: 150GB},
  data_disk: {size: 500GB, type: ssd}, network: my-network, subnet: my-subnet, public_ip: false, nat: false,
  mirrors: {pypi: "https://packages.example.com/simple"}, service_account: trainer@my-project.iam.gserviceaccount.com,
  access: {mode: single-user, owner: me@example.com}, managed_euc: false, shielded: {secure_boot: true}, labels: {team: research},
  tags: [no-ingress], metadata: {notebook-disable-downloads: "true"}, bucket: "gs://my-bucket/provision", idle_shutdown: 60m, max_lifetime: 8h,
  on_failure: stop, gpu: L4, cuda: "12.8", paths: {data: /home/jupyter/data}, requires: {ram: 16GiB}}
Disk: {size: 500GB, type: ssd, kms_key: projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key}
Access: {mode: single-user, owner: me@example.com}
Shielded: {secure_boot: true, vtpm: true, integrity_monitoring: true}
"""  # noqa: E501
"""Every key of every part as it may be written. (Of `secrets.NAME` exactly one key is taken.)"""

WHOLE = """\
apiVersion: provision/v1
name: hf-trainer
extends: builtin:huggingface-trainer
gpu: L4
cuda: "12.8"
cuda_toolkit: "12.8"
python: "3.11"
packages: [torch==2.11.*, "transformers[torch]>=5.13", {name: my-lib, version: ">=1", index: private}]
conda_packages: [ffmpeg]
indexes: {private: {url: "https://packages.example.com/simple"}}
exclude_newer: 2026-11-01
platforms: [linux-x86_64]
system_packages: [git]
env: {TOKENIZERS_PARALLELISM: "false"}
secrets: {HF_TOKEN: {env: HF_TOKEN}}
paths: {data: /data/set, output: /data/out}
requires: {ram: 16GiB}
training: {precision: bf16}
cost: {limit_per_hour: 3.0}
verify: {tier: quick}
targets: {here: {kind: local}}
"""  # noqa: E501
"""Every key at the top of a spec."""


def pages() -> dict[str, str]:
    """Return every generated page by its path under docs/."""
    return {
        "spec.schema.json": schema_text(),
        "spec.md": spec_page(json_schema({})),
        "findings.md": findings_page(),
        "rules.md": rules_page(),
        **{f"rules/{rule.id}.md": f"{NOTE}\n\n{render_rule_page(rule)}" for rule in RULES},
    }


def spec_page(schema: dict[str, Any]) -> str:
    """Return the reference of the spec language."""
    known = schema["definitions"]
    parts = [
        NOTE,
        "# The spec language, provision/v1",
        INTRODUCTION.strip(),
        "## The top of a spec",
        table(schema, top_values(WHOLE), known),
    ]
    parts += ["Every key, as it may be written:", f"```yaml\n{WHOLE.strip()}\n```"]
    examples = yaml.safe_load(EXAMPLES)
    for name, place in PARTS.items():
        part = long_form(known[name])
        parts += [
            f"## {name}",
            f"`{place}`",
            sentence(part["description"]),
            table(part, {key: given(value) for key, value in examples[name].items()}, known),
        ]
    for name, place in (("Platform", "platforms[]"), ("Precision", "training.precision")):
        listed = ", ".join(code(value) for value in known[name]["enum"])
        parts += [
            f"## {name}",
            f"`{place}`",
            f"{sentence(known[name]['description'])} One of: {listed}.",
        ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """
A spec is a YAML 1.2 mapping. `gpu`, `python` and `packages` must be there; every other key has a default. Unknown keys are errors.
Nothing is converted silently: `python: 3.10` is an error, because YAML reads a number there.

- A target may say its own `gpu`, `cuda`, `paths` and `requires`. It may never say its own `packages` or `python`.
- With `extends`, maps merge, packages merge by name, other lists replace, and null removes.
- Which of these keys have an effect on a local target, and which are refused, is said in [the guide](guide.md#what-this-version-does-not-do).
- What can be wrong with a spec is listed in [findings.md](findings.md) (text, shape, `extends`) and [rules.md](rules.md) (meaning).
- The same as JSON Schema, draft 7: [spec.schema.json](spec.schema.json), or `provision schema`.
"""  # noqa: E501


def table(part: dict[str, Any], examples: dict[str, str], known: dict[str, Any]) -> str:
    """Return one row for each key of a part: name, type, default, description and example; `known`
    holds the parts that it may refer to.
    """
    rows = ["| key | type | default | what it is | example |", "|---|---|---|---|---|"]
    for key, field in sorted(part["properties"].items(), key=lambda item: item[0] != "kind"):
        default = (
            "required" if key in part.get("required", ()) else code(given(field.get("default")))
        )
        rows.append(
            f"| `{key}` | {cell(words(field))} | {default} | "
            f"{cell(described(field, known))} | {code(examples[key])} |"
        )
    return "\n".join(rows)


def words(field: dict[str, Any]) -> str:
    """Return the type of a field in words, with links to the parts."""
    if "const" in field:
        return code(str(field["const"]))
    if "enum" in field:
        return " or ".join(code(str(value)) for value in field["enum"])
    if part := referred(field):
        return f"[{part}](#{part.lower()})"
    if members := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(
            dict.fromkeys(words(member) for member in members if member.get("type") != "null")
        )
    if field.get("type") == "array":
        return f"list of: {words(field['items'])}"
    if field.get("type") == "object":
        return keyed(field)
    return bounded(field)


def keyed(field: dict[str, Any]) -> str:
    """Return a mapping with free keys in words."""
    for pattern, value in field.get("patternProperties", {}).items():
        return f"mapping; keys: {FORMAT_DESCRIPTIONS[pattern][0]}; values: {words(value)}"
    return "mapping"


def bounded(field: dict[str, Any]) -> str:
    """Return a plain value in words: its format or its bounds."""
    if "pattern" in field:
        return FORMAT_DESCRIPTIONS[field["pattern"]][0]
    name = {
        "string": "text",
        "boolean": "true or false",
        "integer": "whole number",
        "number": "number",
    }.get(field.get("type", ""), "any value")
    bounds = [
        f"{word} {field[key]}"
        for key, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
        )
        if key in field
    ]
    return ", ".join([name, *bounds])


def referred(field: dict[str, Any]) -> str:
    """Return the name of the part that a field holds, "" when it holds none."""
    reference = field.get("$ref") or (field.get("allOf") or [{}])[0].get("$ref") or ""
    return str(reference).rsplit("/", 1)[-1]


def described(field: dict[str, Any], known: dict[str, Any]) -> str:
    """Return what a field is; where it says the same as its part, pydantic leaves it to the part,
    and a key that takes one value needs no more.
    """
    if "description" in field:
        return sentence(field["description"])
    part = referred(field)
    return sentence(known[part]["description"]) if part else "Says which kind of target this is."


def long_form(part: dict[str, Any]) -> dict[str, Any]:
    """Return the mapping form of a part that may also be written as one text."""
    forms = [form for form in part.get("anyOf", ()) if "properties" in form]
    return {**forms[0], "description": part["description"]} if forms else part


def top_values(example: str) -> dict[str, str]:
    """Return each key of an example that has one key a line, with its value as it stands there."""
    return {
        line.partition(": ")[0]: line.partition(": ")[2] for line in example.strip().splitlines()
    }


def given(value: Any) -> str:
    """Return a value as YAML in one line, without what it leaves open; "" when it leaves all open."""  # noqa: E501
    if isinstance(value, dict):
        parts = [f"{key}: {text}" for key, item in value.items() if (text := given(item))]
        return "{" + ", ".join(parts) + "}" if parts else ""
    if isinstance(value, list):
        return "[" + ", ".join(given(item) for item in value) + "]" if value else ""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return (
            value
            if _PLAIN.fullmatch(value) and isinstance(yaml.safe_load(value), str)
            else json.dumps(value)
        )
    return json.dumps(value)


def findings_page() -> str:
    """Return the table of findings about text, shape and `extends`."""
    rows = [
        f"| {kind.id} | {kind.name} | {kind.severity} | {cell(kind.explanation)} |"
        for kind in FINDING_KINDS
    ]
    intro = (
        "Findings about the text of a spec (YML), its shape (SPC) and what it extends (REF). "
        "Findings about its meaning are [rules](rules.md)."
    )
    return (
        "\n\n".join(
            [
                NOTE,
                "# Findings",
                intro,
                "\n".join(["| id | name | severity | what it means |", "|---|---|---|---|", *rows]),
            ]
        )
        + "\n"
    )


def rules_page() -> str:
    """Return the table of rules, each with a link to its page."""
    rows = [
        f"| [{rule.id}](rules/{rule.id}.md) | {rule.name} | {rule.severity} | "
        f"{cell(rule.summary)} |"
        for rule in sorted(RULES, key=lambda r: r.id)
    ]
    intro = (
        "What `provision lint` says about the meaning of a spec. The rules are asked of "
        "the spec, and again of every resolved set. "
        "`severity` is the gravest that a rule speaks with; `unknown` says that the facts "
        "have no row for what the spec names. "
        "Findings about text and shape are in [findings.md](findings.md)."
    )
    return (
        "\n\n".join(
            [
                NOTE,
                "# Rules",
                intro,
                "\n".join(["| id | name | severity | what is wrong |", "|---|---|---|---|", *rows]),
            ]
        )
        + "\n"
    )


def sentence(text: str) -> str:
    """Return a docstring as one paragraph that ends in a full stop."""
    text = " ".join(text.split())
    return text if text.endswith((".", ":")) else text + "."


def cell(text: str) -> str:
    """Return text for a cell of a table; outside of code, words in angle brackets are no tags."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Return text as code in a cell."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def stale(folder: Path) -> list[str]:
    """Return the pages that are missing, differ, or should not be there, by path under `folder`."""
    wanted = pages()
    left = [
        f"rules/{path.name}"
        for path in (folder / "rules").glob("*.md")
        if f"rules/{path.name}" not in wanted
    ]
    differ = [
        name
        for name, text in wanted.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]
    return sorted([*differ, *left])


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` exit 1 when one is stale."""
    found = stale(DOCS)
    if "--check" in arguments:
        print("\n".join(["stale: run make docs", *found]) if found else "docs are up to date")
        return 1 if found else 0
    wanted = pages()
    (DOCS / "rules").mkdir(parents=True, exist_ok=True)
    for name in found:
        if name in wanted:
            (DOCS / name).write_text(wanted[name], encoding="utf-8")
        else:
            (DOCS / name).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
