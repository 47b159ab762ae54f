"""Names and examples in messages about the spec: formats, keys, synonyms and types."""

from __future__ import annotations

import re
from typing import Any

from provision.diagnostics import Route

FORMAT_DESCRIPTIONS: dict[str, tuple[str, str]] = {
    r"^[0-9]{1,6}(\.[0-9]{1,3})?\s?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$": (
        "a size with a unit",
        '"16GiB"',
    ),
    r"^\d+(\.\d+)?[KMBT]$": ("a number of parameters with a unit (K, M, B, T)", '"1.1B"'),
    r"^(\.\.?(/[A-Za-z0-9._-]+)+/?|[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?)$": (
        "the name of a model on the Hugging Face Hub, or a folder such as ./model",
        "meta-llama/Llama-3.1-8B",
    ),
    r"^[1-9][0-9]{0,4}[smhd]$": ("a whole number followed by s, m, h or d", '"30m"'),
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": (
        "a name of lowercase letters and digits, with - between them, at most 63 characters",
        "my-name",
    ),
    r"^[A-Za-z_][A-Za-z0-9_]*$": (
        "a variable name: letters, digits and _, not starting with a digit",
        "HF_TOKEN",
    ),
    r"^[^\x00]*$": ("text without NUL characters", '"value"'),
    r"^[A-Za-z0-9][A-Za-z0-9._ -]*$": ("the name of a GPU", "L4"),
    r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$": (
        "the name of a Python distribution or of one of its extras",
        "torch",
    ),
    r"^[a-z0-9_][a-z0-9_.-]*$": ("the name of a conda package", "ffmpeg"),
    r"^(https?|file)://\S+$": (
        "a URL that starts with https://, http:// or file://",
        "https://packages.example.com/simple",
    ),
    r"^projects/[^/]+/secrets/[^/]+/versions/([0-9]+|latest)$": (
        "a version in Secret Manager",
        "projects/my-project/secrets/hf/versions/3",
    ),
    r"^(auto|none|\d+\.\d+)$": ("auto, none, or a CUDA version with two parts", '"12.8"'),
    r"^\d+\.\d+$": ("a version with two parts", '"12.8"'),
    r"^3\.\d{1,2}$": ("a Python version with two parts", '"3.12"'),
    r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?$": ("a date, or a time in UTC", "2026-11-01"),
    r"^[a-z0-9][a-z0-9+.-]+$": ("the name of a Debian package", "ffmpeg"),
    r"^[a-z0-9_]+$": ("a name as in TrainingArguments(optim=...)", "adamw_torch"),
    r"^(latest|\d{4}\.\d{2})$": ("`latest`, or a year and month", '"2026.07"'),
    r"^[^/~\\\x00][^\\\x00]*$": (
        "a folder relative to the spec, with forward slashes",
        "src",
    ),
    r"^gs://[a-z0-9][a-z0-9._-]{2,}(/.*)?$": (
        "a bucket with a name of 3 to 63 characters and a folder in it",
        "gs://my-bucket/provision",
    ),
}
"""A description of each pattern of the model, and an example in YAML."""

KEY_EXAMPLES: dict[str, str] = {
    "gpu": "gpu: L4, or gpu: {type: L4, count: 2}",
    "packages": 'packages: ["torch==2.13.*", "transformers[torch]>=5.13"]',
    "conda_packages": "conda_packages: [ffmpeg]",
    "indexes": "indexes: {private: {url: https://packages.example.com/simple}}",
    "platforms": "platforms: [linux-x86_64]",
    "system_packages": "system_packages: [git, ffmpeg]",
    "env": 'env: {TOKENIZERS_PARALLELISM: "false"}',
    "secrets": "secrets: {HF_TOKEN: {env: HF_TOKEN}}",
    "paths": "paths: {data: /home/me/data}",
    "requires": 'requires: {ram: 16GiB, driver: ">=580"}',
    "training": "training: {precision: bf16, batch_size: 4}",
    "model": "model: {parameters: 1.1B, layers: 22}",
    "arguments": "arguments: {warmup_steps: 10}",
    "cost": "cost: {limit_per_hour: 3.0}",
    "verify": "verify: {tier: quick}",
    "code": "code: ., or code: {path: src, exclude: [data]}",
    "command": 'command: [python, train.py, --max_steps, "2"]',
    "expect": "expect: {files: [out/model.safetensors]}",
    "targets": "targets: {local: {kind: local}}",
    "extras": "extras: [torch]",
    "zones": "zones: [us-central1-a, us-central1-b]",
    "boot_disk": "boot_disk: {size: 150GB, type: ssd}",
    "data_disk": "data_disk: {size: 500GB, type: ssd}",
    "mirrors": "mirrors: {pypi: https://packages.example.com/simple}",
    "access": "access: {mode: single-user, owner: me@example.com}",
    "shielded": "shielded: {secure_boot: true}",
    "labels": "labels: {team: research}",
    "tags": "tags: [no-ingress]",
    "metadata": 'metadata: {notebook-disable-downloads: "true"}',
}
"""Examples of keys whose value is not a scalar."""

KEY_SYNONYMS: dict[str, str] = {
    "accelerator": "gpu",
    "gpu_type": "gpu",
    "dependencies": "packages",
    "requirements": "packages",
    "pip": "packages",
    "libraries": "packages",
    "apt": "system_packages",
    "apt_packages": "system_packages",
    "conda": "conda_packages",
    "environment": "env",
    "environment_variables": "env",
    "variables": "env",
    "index": "indexes",
    "extra_index_url": "indexes",
    "base": "extends",
    "inherits": "extends",
    "epochs": "arguments",
    "memory": "ram",
    "zone": "zones",
    "type": "kind",
}
"""Names of keys in other tools."""


def format_route(route: Route) -> str:
    """Return a route as people write it: packages[0].name."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:60]}" for part in route)
    return text.removeprefix(".") or "the spec"


def describe_type(value: Any) -> str:
    """Return the type of a value with its article."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "a mapping"


def correct_format(pattern: str, text: str) -> str | None:
    """Return the value that the author probably meant in a format, or None.

    Examples: 3.11 for 3.11.7, 12.8 for cu128, 16GiB for 16G.
    """
    text = text.strip()
    candidates = [text, text.lower(), ".".join(text.split(".")[:2])]
    if wheel := re.fullmatch(r"(?:cu|cuda[-_ ]?)(\d{2})\.?(\d)", text, re.IGNORECASE):
        candidates.append(f"{wheel[1]}.{wheel[2]}")
    if size := re.fullmatch(r"(\d+(?:\.\d+)?)\s?([KMGT])(i?)b?", text, re.IGNORECASE):
        unit = size[2].upper()
        candidates += [f"{size[1]}{unit}iB", f"{size[1]}{unit}"]
    return next((candidate for candidate in candidates if re.fullmatch(pattern, candidate)), None)
