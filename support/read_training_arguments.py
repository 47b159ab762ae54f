"""Read the arguments and optimizers of TrainingArguments from the wheels of transformers and print
facts/tables/training_arguments.yaml.

`--check` fails when the newest transformers on the index is newer than the table. Nothing of a
wheel is imported: training_args.py is parsed as text.
Needs pip and a package index; fetches the newest patch of each minor release, one at a time, and
removes it (some 10 MB each).
"""

from __future__ import annotations

import ast
import datetime
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from packaging.version import Version

TABLE = (
    Path(__file__).parents[1] / "src" / "provision" / "facts" / "tables" / "training_arguments.yaml"
)
OLDEST = Version("4.20")
"""The table of transformers releases begins there."""
_DEPRECATED = re.compile(
    r"(?<!for )(?<!as )`-{0,2}(\w+)`(?: and `-{0,2}(\w+)`)? (?:is|are) deprecated|[Uu]sing "
    r"deprecated `-{0,2}(\w+)` argument"
)
_HELP = re.compile(r"(?:deprecated|this (?:argument|parameter) is deprecated)\b", re.IGNORECASE)
_INSTEAD = re.compile(
    r"`?-{0,2}\b(\w+)`?(?: is preferred| instead)|alias of `(\w+)`|[Uu]se (?:of )?`-{0,2}(\w+)"
)

# What took the place of an argument whose own deprecation text names none, or names it in a
# sentence. Each was read in the release that is given.
SUCCESSORS = {
    "adafactor": "optim",  # 4.57.6, warning in __post_init__: use --optim adafactor
    # 4.45.2, help: pass {'dispatch_batches': VALUE} to accelerator_config
    "dispatch_batches": "accelerator_config",
    "fsdp_min_num_params": "fsdp_config",  # 4.57.6, warning in _process_fsdp_args
    "fsdp_transformer_layer_cls_to_wrap": "fsdp_config",  # 4.57.6, warning in _process_fsdp_args
    # 5.0.0, docstring of train_sampling_strategy: "group_by_length"
    "group_by_length": "train_sampling_strategy",
    "include_inputs_for_metrics": "include_for_metrics",  # 4.57.6, warning in __post_init__
    "include_tokens_per_second": "include_num_input_tokens_seen",
    "no_cuda": "use_cpu",  # 4.57.6, docstring of use_cpu, warning in __post_init__
    "push_to_hub_model_id": "hub_model_id",
    "push_to_hub_organization": "hub_model_id",
    "push_to_hub_token": "hub_token",
    # 4.45.2, help: pass {'split_batches': True} to accelerator_config
    "split_batches": "accelerator_config",
    "tpu_metrics_debug": "debug",  # 4.57.6, help: the use of --debug tpu_metrics_debug is preferred
    "torchdynamo": "torch_compile_backend",  # 4.57.6, warning in __post_init__
    "warmup_ratio": "warmup_steps",  # 5.0.0, docstring of warmup_steps: below 1 it is a ratio
}

# Successors that take the same values: only the name changes.
RENAMED = {
    *(
        "activation_checkpointing",
        "activation_checkpointing_kwargs",
        "ddp_backend",
        "eval_strategy",
        "half_precision_backend",
        "hub_token",
    ),
    *(
        "per_device_eval_batch_size",
        "per_device_train_batch_size",
        "torch_compile_backend",
        "use_cpu",
        "warmup_steps",
    ),
}

# What to do in place of an argument that nothing replaced.
INSTEAD = {
    "logging_dir": "set TENSORBOARD_LOGGING_DIR in env",  # 5.0.0, help of logging_dir
    "overwrite_output_dir": "remove it; Trainer never used it",  # huggingface/transformers#41323
    # 4.57.6, help of use_mps_device
    "use_mps_device": "remove it; mps is used if it is available",
}

# What an optimizer's constructor imports, by the beginning of its name; the first that fits counts.
# Read in trainer.py (4.x) and trainer_optimizer.py (5.x).
PACKAGES = {
    "adamw_torch_4bit": "torchao",
    "adamw_torch_8bit": "torchao",
    "adamw_torch_xla": "torch-xla",
    "adamw_torch_npu_fused": "torch-npu",
    "adamw_anyprecision": "torchdistx",
    "adamw_apex_fused": "apex",
    "adamw_bnb": "bitsandbytes",
    "adamw_8bit": "bitsandbytes",
    "ademamix": "bitsandbytes",
    "lion": "bitsandbytes",
    "paged_": "bitsandbytes",
    "rmsprop_bnb": "bitsandbytes",
    "galore_": "galore-torch",
    "apollo_": "apollo-torch",
    "lomo": "lomo-optim",
    "adalomo": "lomo-optim",
    "grokadamw": "grokadamw",
    "schedule_free_": "schedulefree",
    "stable_adamw": "torch-optimi",
}


@dataclass
class Argument:
    """An argument or the name of an optimizer: the releases it is in, oldest first, and since when
    its own text calls it deprecated.
    """

    releases: list[str] = field(default_factory=list)
    deprecated_since: str = ""
    replaced_by: str = ""


def main(arguments: list[str]) -> int:
    """Print the table, or with `--check` exit 1 when the newest release on the index is missing
    from it.
    """
    newest = newest_patches()
    if "--check" in arguments:
        return checked(newest[-1])
    known: dict[str, Argument] = {}
    optimizers: dict[str, Argument] = {}
    for release in newest:
        print(f"reading {release}", file=sys.stderr)
        classes = training_args(release)
        add(known, release, classes["TrainingArguments"])
        for name in texts_of(classes["OptimizerNames"]):
            optimizers.setdefault(name, Argument()).releases.append(release)
    print(written(known, optimizers, newest), end="")
    return 0


def newest_patches() -> list[str]:
    """Return the newest patch of each minor release on the index, oldest first."""
    line = [
        sys.executable,
        "-m",
        "pip",
        "index",
        "versions",
        "transformers",
        "--ignore-requires-python",
    ]
    out = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    listed = next(text for text in out.splitlines() if text.startswith("Available versions:"))
    versions = [Version(text.strip()) for text in listed.partition(":")[2].split(",")]
    newest: dict[tuple[int, ...], Version] = {}
    for version in sorted(
        version for version in versions if version >= OLDEST and not version.is_prerelease
    ):
        newest[version.release[:2]] = version
    return [str(version) for version in newest.values()]


def checked(release: str) -> int:
    """Tell whether the table reaches `release`."""
    last = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["read"][-1]
    if Version(release) > Version(last):
        print(
            f"transformers {release} is on the index, {TABLE.name} ends with {last}; run "
            f"python support/read_training_arguments.py > {TABLE}"
        )
        return 1
    print(f"{TABLE.name} knows transformers {release}")
    return 0


def training_args(release: str) -> dict[str, ast.ClassDef]:
    """Return the classes of training_args.py in a release by name, parsed."""
    with tempfile.TemporaryDirectory() as folder:
        line = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--ignore-requires-python",
            "--dest",
            folder,
        ]
        subprocess.run([*line, f"transformers=={release}"], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read("transformers/training_args.py").decode()
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def add(known: dict[str, Argument], release: str, parsed: ast.ClassDef) -> None:
    """Add what one release says."""
    fields = {name: texts for name, texts in fields_of(parsed) if not name.startswith("_")}
    if len(fields) < 80:
        raise SystemExit(
            f"transformers {release}: only {len(fields)} fields were found in "
            "TrainingArguments; its form has changed"
        )
    warned = deprecations(parsed)
    for name, help_text in fields.items():
        argument = known.setdefault(name, Argument())
        argument.releases.append(release)
        said = warned.get(name) or (help_text if _HELP.match(help_text) else "")
        if said:
            argument.deprecated_since = argument.deprecated_since or release
            argument.replaced_by = argument.replaced_by or successor(name, said, set(fields))
        else:
            argument.deprecated_since = argument.replaced_by = ""


def fields_of(parsed: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield each field that the constructor takes, with its help text."""
    for node in parsed.body:
        if (
            not isinstance(node, ast.AnnAssign)
            or not isinstance(node.target, ast.Name)
            or "ClassVar" in ast.unparse(node.annotation)
        ):
            continue
        keywords = (
            {keyword.arg: keyword.value for keyword in node.value.keywords}
            if isinstance(node.value, ast.Call)
            else {}
        )
        init = keywords.get("init")
        if isinstance(init, ast.Constant) and init.value is False:
            continue
        yield (
            node.target.id,
            " ".join(texts(keywords["metadata"]))[len("help ") :] if "metadata" in keywords else "",
        )


def texts_of(parsed: ast.ClassDef) -> Iterator[str]:
    """Yield the values of an enumeration of texts."""
    for node in parsed.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value


def deprecations(parsed: ast.ClassDef) -> dict[str, str]:
    """Return the warnings of the class that call a field deprecated, by field."""
    found: dict[str, str] = {}
    for call in (node for node in ast.walk(parsed) if isinstance(node, ast.Call)):
        said = " ".join(texts(call))
        for match in _DEPRECATED.finditer(said):
            found.update({name: said for name in match.groups() if name and name not in found})
    return found


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the strings below a node, in the order in which they stand."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def successor(name: str, said: str, fields: set[str]) -> str:
    """Return the field that a deprecation text points to, "" when it names none."""
    named = (next(filter(None, match.groups())) for match in _INSTEAD.finditer(said))
    return next((other for other in named if other in fields and other != name), "")


def written(
    known: dict[str, Argument], optimizers: dict[str, Argument], releases: list[str]
) -> str:
    """Return the table as YAML."""
    listed = [
        ", ".join(f'"{release}"' for release in releases[start : start + 12])
        for start in range(0, len(releases), 12)
    ]
    lines = [
        HEAD.format(
            today=datetime.datetime.now(tz=datetime.UTC).date(), releases=",\n     ".join(listed)
        ),
        "rows:",
        *(row("argument", name, argument, releases) for name, argument in sorted(known.items())),
        "optimizers:",
        *(
            row("optimizer", name, optimizer, releases)
            for name, optimizer in sorted(optimizers.items())
        ),
    ]
    return "\n".join(lines) + "\n"


HEAD = """\
# Arguments of transformers.TrainingArguments, written by support/read_training_arguments.py. `read` are the releases that were read, the newest patch of
# each minor. An argument, or an optimizer of TrainingArguments(optim=...), exists in all releases from `first` to `last`; without `first`, in the oldest
# release that was read, without `last`, in the newest. `deprecated_since` is the first of these releases that documents it as deprecated, `replaced_by` the
# argument that replaced it, if any (`renamed`: with the same values), `instead` the alternative if there is no replacement; `needs` is the package that an
# optimizer comes from.
as_of: {today}
confidence: high
source: "training_args.py, trainer.py and trainer_optimizer.py in the transformers wheels on PyPI"
read_by: support/read_training_arguments.py
keys: {{rows: [argument], optimizers: [optimizer]}}
read:
    [{releases}]"""  # noqa: E501


def row(kind: str, name: str, known: Argument, releases: list[str]) -> str:
    """Return one row."""
    first, last = known.releases[0], known.releases[-1]
    if known.releases != releases[releases.index(first) : releases.index(last) + 1]:
        raise SystemExit(f"{name} went and came back: the table cannot say that")
    versions = {
        "first": first if first != releases[0] else "",
        "last": last if last != releases[-1] else "",
        "deprecated_since": known.deprecated_since,
    }
    gone = versions["last"] or versions["deprecated_since"]
    names = {
        "replaced_by": (known.replaced_by or SUCCESSORS.get(name, ""))
        if gone and kind == "argument"
        else ""
    }
    if kind == "optimizer":
        names["needs"] = next(
            (package for begins, package in PACKAGES.items() if name.startswith(begins)), ""
        )
    said = [f'{key}: "{value}"' for key, value in versions.items() if value] + [
        f"{key}: {value}" for key, value in names.items() if value
    ]
    if names["replaced_by"] in RENAMED:
        said.append("renamed: true")
    if gone and name in INSTEAD:
        said.append(f'instead: "{INSTEAD[name]}"')
    return f"  - {{{', '.join([f'{kind}: {name}', *said])}}}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
