"""provision why reads an error as logs and notebooks hold it: behind stamps and ranks, as JSON or
YAML of Cloud Logging, and amid quoted source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from provision.facts import load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.verification.error_lookup.error_text import extract_error_text
from provision.verification.error_lookup.symptoms import (
    LookupContext,
    explain_error,
    find_unexplained_error,
)

TEXTS = Path(__file__).parents[1] / "symptoms"
FACTS = load_facts()
NUMPY = (
    "\nA module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may "
    "crash.\n\nAttributeError: _ARRAY_API not found\n"
)
TRACES = {
    **{
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted(TEXTS.glob("*.txt"))
        if path.stem not in ("process-killed", "no-kernel-image")
    },
    "array-api": f"Traceback (most recent call last):\n{NUMPY}",
    "cuda-mismatch-ext": "RuntimeError:\nThe detected CUDA version (11.5) mismatches the version "
    "that was used to compile\nPyTorch (12.1). Please make sure.\n",
}


def found(content: str, name: str = "trace.txt") -> list[str]:
    return [
        one.symptom.id
        for one in explain_error(
            extract_error_text(content.encode(), name).text, load_symptoms(), LookupContext(FACTS)
        )
    ]


def entry(words: str, number: int = 0) -> dict[str, object]:
    return {
        "insertId": f"a{number}",
        "logName": "projects/p/logs/train",
        "textPayload": words,
        "timestamp": f"2026-11-20T10:00:{number // 60:02}.{number % 60:02}Z",
    }


def entries(text: str) -> list[dict[str, object]]:
    return [entry(line, number) for number, line in enumerate(text.splitlines()) if line]


def behind(words: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{words}{line}\n" for line in text.splitlines())


def by_eight(text: str) -> str:
    return "\n".join(f"[rank{rank}]: {line}" for line in text.splitlines() for rank in range(8))


FORMS: dict[str, Callable[[str], str]] = {
    "windows": lambda text: text.replace("\n", "\r\n"),
    "colours": lambda text: "".join(
        f"\x1b[1;35m{line[:9]}\x1b[0m{line[9:]}\n" for line in text.splitlines()
    ),
    "logging": behind("2026-11-20 10:11:12,123 - ERROR - "),
    "stamp": behind("2026-11-20T10:11:12.1234567Z "),
    "journald": behind("2026-11-20T10:11:12.123456Z workbench-1 python3[4242]: "),
    "syslog": behind(
        "Nov 20 10:11:12 workbench-1 google_metadata_script_runner[812]: startup-script: "
    ),
    "serial console": behind("[   52.123456] google_metadata_script_runner[812]: startup-script: "),
    "severity": behind("ERROR 2026-11-20T10:11:12.123456Z "),
    "custom job": behind("INFO\t2026-11-20 10:11:12 +0000\tworkerpool0-0\t"),
    "docker compose": behind("trainer-1  | "),
    "a rank": behind("[rank3]: "),
    "torchrun --tee": behind("[default3]:"),
    "eight ranks at once": by_eight,
    "gcloud, JSON, newest first": lambda text: json.dumps(entries(text)[::-1], indent=2),
    "gcloud, YAML, newest first": lambda text: "".join(
        f"---\n{yaml.safe_dump(one)}" for one in entries(text)[::-1]
    ),
    "gcloud, one entry": lambda text: (
        f"---\n{yaml.safe_dump({'insertId': 'a', 'jsonPayload': {'message': text}})}"
    ),
    "JSON lines": lambda text: "".join(
        json.dumps({"severity": "ERROR", "message": line}) + "\n" for line in text.splitlines()
    ),
    "JSON line": lambda text: json.dumps({"severity": "ERROR", "message": text}),
}


@pytest.mark.long(after=2)
@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_a_log_shows_what_the_bare_text_shows(form: str) -> None:
    for name, text in TRACES.items():
        assert found(FORMS[form](text)) == found(text), name
        assert found(text)[0] == name


@pytest.mark.parametrize("escape", [json.dumps, repr])
def test_line_ends_that_a_log_escaped_are_line_ends(escape: Callable[[str], str]) -> None:
    text = (
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may "
        "crash. To support both 1.x and 2.x\nversions of NumPy"
    )
    (explanation,) = explain_error(
        extract_error_text(f"the job printed {escape(text)}".encode(), "log").text,
        load_symptoms(),
        LookupContext(load_facts()),
    )
    assert explanation.symptom.id == "numpy-1x-module"
    assert "cannot be run in NumPy 2.1.0" in explanation.line
    path = "see C:\\new\\notes"
    assert extract_error_text(path.encode(), "log").text == path


def test_each_rank_is_read_by_itself() -> None:
    """Two ranks print at once: neither traceback is cut, and what one waited for explains less than
    what the other died of.
    """
    out_of_memory = (
        'Traceback (most recent call last):\n  File "/a.py", line 2, in '
        "<module>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n2 GiB"
    )
    waiting = (
        'Traceback (most recent call last):\n  File "/a.py", line 3, in <module>\n[Rank 0] '
        "Watchdog caught collective operation timeout: WorkNCCL(\nend"
    )
    pairs = zip(out_of_memory.splitlines(), waiting.splitlines(), strict=True)
    text = "\n".join(f"[rank1]: {one}\n[rank0]: {other}" for one, other in pairs)

    assert found(text) == ["oom", "nccl-timeout"]
    assert (
        "CUDA out of memory. Tried to allocate\n2 GiB"
        in extract_error_text(text.encode(), "-").text
    )


FORKED = '''        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with "'''
MISSING = """    raise AssertionError("Torch not compiled with CUDA enabled")"""


@pytest.mark.parametrize(
    "text",
    [
        (
            'Traceback (most recent call last):\n  File "/a/torch/cuda/__init__.py", line '
            f"522, in _lazy_init\n{MISSING}\n"
        ),
        (
            "Cell In[3], line 1\n----> 1 go()\n\nFile /a/torch/cuda/__init__.py:522, in "
            f"_lazy_init()\n    518 {FORKED}\n--> 522 {MISSING}\n    523 if x:\n\n"
        ),
        (
            f"<ipython-input-3-ab> in <module>\n      1 {FORKED}\n----> 2 "
            f"go()\n\n/a/torch/cuda.py in _lazy_init()\n    518 {FORKED}\n--> 522 {MISSING}\n\n"
        ),
        (
            f"│ /a/torch/cuda/__init__.py:522 in _lazy_init   │\n│    518 │   {FORKED} │\n│ ❱  "
            f"522 │ {MISSING} │\n╰──────╯\n"
        ),
        (
            f"File /a/torch/cuda/__init__.py:1522, in _lazy_init()\n   1518 {FORKED}\n-> 1522 "
            f"{MISSING}\n   1523 if x:\n\n"
        ),
        (
            "[/a/torch/cuda/__init__.py](https://localhost:8080/#) in _lazy_init()\n"
            f"    518 {FORKED}\n--> 522 {MISSING}\n\n"
        ),
        (
            "File [c:\\a\\cuda.py:522](file:///C:/a/cuda.py:522), in _lazy_init()\n    "
            f"[518](file:///C:/a/cuda.py:518) {FORKED}\n--> [522](file:///C:/a/cuda.py:522) "
            f"{MISSING}\n\n"
        ),
    ],
    ids=["python", "ipython", "older ipython", "rich", "long file", "colab", "vs code"],
)
def test_source_that_a_traceback_quotes_is_no_error(text: str) -> None:
    assert found(f"{text}KeyError: 7\n") == []
    assert found(f"{text}RuntimeError: No CUDA GPUs are available\n") == ["no-cuda-gpus"]


@pytest.mark.parametrize(
    "content",
    [
        "[",
        "[1, 2]",
        "[]",
        "{}",
        '{"message": 3}',
        "---\ninsertId: *a\n",
        "insertId: [",
        '{"message": ""}\n{',
        "[" * 5000,
    ],
)
def test_what_is_no_log_is_read_as_it_is(content: str) -> None:
    assert found(f"{content}\nRuntimeError: Too many open files\n") == ["worker-files"]


UNRELATED: dict[str, str] = yaml.load(
    (TEXTS / "unrelated.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


def test_errors_of_other_kinds_and_programs_show_nothing(subtests: pytest.Subtests) -> None:
    for name, text in UNRELATED.items():
        with subtests.test(name):
            assert found(text) == []


KEY = (
    'Traceback (most recent call last):\n  File "/a.py", line 2, in <module>\nKeyError: '
    "'labels'\n"
)
FORK = (
    "huggingface/tokenizers: The current process just got forked, after parallelism has "
    "already been used.\n"
)
CHAINED = (
    "RuntimeError: Too many open files\n\nDuring handling of the above exception, another "
    "exception occurred:\n\n"
)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (FORK + KEY, "KeyError: 'labels'"),
        (KEY + FORK, "KeyError: 'labels'"),
        (f"Traceback (most recent call last):\n{CHAINED}{KEY}", ""),
        (f"RuntimeError: Too many open files\n{KEY}", "KeyError: 'labels'"),
        ("RuntimeError: Too many open files\n", ""),
        ("Traceback (most recent call last)", ""),
    ],
)
def test_an_error_that_is_not_known_is_told_from_what_stands_before_it(
    text: str, unknown: str
) -> None:
    assert (
        find_unexplained_error(text, explain_error(text, load_symptoms(), LookupContext(FACTS)))
        == unknown
    )


def test_quoting_is_told_from_printing_by_depth() -> None:
    """The text of an error may have several lines, indented like the traceback itself."""
    frames = (
        '      Traceback (most recent call last):\n        File "<string>", line 2, in '
        "<module>\n          import torch\n"
    )
    text = f"{frames}      ModuleNotFoundError: No module named 'torch'\n"

    assert found(text) == ["module-missing"]
    assert re.search(r"import torch", extract_error_text(text.encode(), "-").text) is None


TRACE_OF_PEFT = (
    "Traceback (most recent call last):",
    '  File "/home/me/train.py", line 3, in <module>',
    "    import peft  # CUDA out of memory",
    "ModuleNotFoundError: No module named 'peft'",
)
PREFIXES = {
    "GitHub Actions": "2026-11-01T00:00:00.1234567Z ",
    "Kaggle": "450.9s\t321\t",
    "Ray": "(RayWorkerWrapper pid=1234, ip=10.0.0.2) ",
    "vllm": "(EngineCore_0 pid=321) ERROR 08-10 11:22:33 [core.py:700] ",
    "mpirun": "[1,0]<stderr>:",
    "srun": "0: ",
    "DeepSpeed": "worker-1: ",
    "Cloud Build": 'Step #4 - "train": ',
    "docker build": "#12 34.56 ",
    "kubectl": "[pod/train-0/pytorch] ",
    "a quoted reply": "> ",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_each_launcher_has_its_prefix(name: str) -> None:
    """The quoted source line is not searched: it keeps its depth below the frame."""
    assert found("\n".join(PREFIXES[name] + line for line in TRACE_OF_PEFT)) == ["module-missing"]


@pytest.mark.parametrize(
    ("text", "symptom"),
    [
        ("<span class='ansi-red-fg'>RuntimeError</span>: Numpy is not available", 0),
        ("ModuleNotFoundError: No module named \u2018peft\u2019", 1),
        ("<pre>ModuleNotFoundError: No module named &#39;peft&#39;</pre>", 1),
        ("ModuleNotFoundError: No module named &#x27;peft&#x27;", 1),
        (r"\u001b[0;31mModuleNotFoundError\u001b[0m: No module named 'peft'", 1),
        (r"ModuleNotFoundError: No module named \x1b[1m'peft'\x1b[0m", 1),
        ("RuntimeError: Expected all tensors to be on the same\ndevice, but found two", 2),
        ("RuntimeError: Expected all tensors to be on the sam\ne device, but found two", 2),
        ("OSError: [Errno 28] 设备上没有空间: '/content'", 3),
        ("bash: nvcc: Kommando nicht gefunden.", 4),
        ("已杀死", 5),
        ("ImportError: libGL.so.1: 无法打开共享对象文件: 没有那个文件或目录", 6),
        ("ImportError: DLL load failed while importing _C: 找不到指定的模块。", 7),
    ],
)
def test_pasted_wrapped_and_translated_texts(text: str, symptom: int) -> None:
    names = ("numpy-unavailable", "module-missing", "two-devices", "no-space")
    names += ("cuda-home", "process-killed", "desktop-library", "windows-extension")
    assert found(text) == [names[symptom]]


def test_lines_of_a_long_text_are_joined_at_its_end_only() -> None:
    text = f"{'x' * 50}\n" * 2000 + "RuntimeError: Expected all tensors to be on the same\ndevice"
    trace = f"Traceback (most recent call last):\n{text}"
    searched = extract_error_text(trace.encode(), "log").text
    explanations = explain_error(searched, load_symptoms(), LookupContext(FACTS))
    assert [one.symptom.id for one in explanations] == ["two-devices"]
    assert find_unexplained_error(searched, explanations) == ""
