"""No text, however hostile, costs more than 5 s of CPU and 300 MB, and each ends in a finding."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import make_once

OK = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'
CPU_LIMIT_S = 5
RSS_LIMIT_KIB = 300 * 1024
LONGEST_MESSAGE = 10_000

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: v}}\n" for n in range(1, 26)
)
CHAIN = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: v}}\n" for n in range(1, 200)
)

CASES: dict[str, tuple[str | bytes, str]] = {
    "billion-laughs": (LAUGHS, "limit"),
    "merge-bomb": (MERGES, "limit"),
    "merge-chain": (CHAIN, "limit"),
    "deep-brackets": ("a: " + "[" * 10_000, "limit"),
    "100-kB-of-brackets": ("[" * 100_000, "limit"),
    "100-kB-of-braces": ("{" * 100_000, "limit"),
    "100-kB-of-dashes": ("- " * 50_000, "limit"),
    "deep-braces": ("{a: " * 10_000, "limit"),
    "deep-block": ("".join(" " * n + "a:\n" for n in range(1_000)), "limit"),
    "deep-questions": ("? " * 50_000, "limit"),
    "2-MB": (OK + "#" * 2_000_000, "SourceError"),
    "1-MB-of-comments": ("#\n" * 500_000, "empty-document"),
    "1-MB-of-blank-lines": ("\n" * 1_000_000, "empty-document"),
    "1-MB-of-spaces": (" " * 1_000_000, "empty-document"),
    "100k-keys": ("".join(f"k{n}: 1\n" for n in range(90_000)), "limit"),
    "9k-unknown-keys": (OK + "".join(f"key_{n}: 1\n" for n in range(9_000)), "more-findings"),
    "9k-duplicate-keys": (OK + "name: x\n" * 9_000, "duplicate-key"),
    "9k-number-keys": (
        OK + "env:\n" + "".join(f"  {n}: 1\n" for n in range(9_000)),
        "key-not-text",
    ),
    "9k-wrong-packages": (
        "gpu: L4\npython: '3.12'\npackages:\n" + "- =x\n" * 9_000,
        "more-findings",
    ),
    "9k-lost-types": (
        OK + "env:\n" + "".join(f"  A{n}: {n}\n" for n in range(9_000)),
        "types-lost",
    ),
    "50k-anchors": ("a:\n" + "".join(f"- &a{n} x\n" for n in range(50_000)), "limit"),
    "19k-equal-anchors": ("a:\n" + "- &a x\n" * 19_000, "duplicate-anchor"),
    "19k-aliases": ("x: &x 1\ny:\n" + "- *x\n" * 19_000, "unknown-key"),
    "alias-cycle": ("a: &a [*a]\n", "alias"),
    "alias-cycle-in-merge": ("a: &a {<<: *a}\n", "alias"),
    "mutual-aliases": ("a: &a [*b]\nb: &b [*a]\n", "alias"),
    "huge-scalar": (OK + "name: " + "x" * 500_000, "limit"),
    "huge-quoted": (OK + 'name: "' + "x" * 500_000 + '"', "limit"),
    "huge-block": (OK + "name: |\n" + "  x\n" * 200_000, "limit"),
    "huge-key": ("x" * 500_000 + ": 1\n", "limit"),
    "long-key": ("x" * 2_000 + ": 1\n", "syntax"),
    "huge-explicit-key": ("? " + "x" * 60_000 + "\n: 1\n", "limit"),
    "huge-int": (OK + "training: {batch_size: " + "9" * 60_000 + "}", "number"),
    "huge-hex": (OK + "training: {batch_size: 0x" + "f" * 60_000 + "}", "number"),
    "huge-float": (
        OK + "training: {batch_size: 1" + "0" * 30_000 + "." + "0" * 30_000 + "}",
        "number",
    ),
    "1e999": (OK + "cost: {limit_per_hour: 1e999}\n", "number"),
    "huge-requirement": (
        "gpu: L4\npython: '3.12'\npackages: ['torch" + ">=1," * 15_000 + "!']\n",
        "bad-format",
    ),
    "huge-extras": (
        "gpu: L4\npython: '3.12'\npackages: ['torch[" + "a," * 30_000 + "']\n",
        "bad-format",
    ),
    "huge-marker": (
        "gpu: L4\npython: '3.12'\npackages: ['torch; " + "(" * 60_000 + "']\n",
        "bad-format",
    ),
    "nested-marker": (
        "gpu: L4\npython: '3.12'\npackages: [{name: torch, marker: '" + "(" * 900 + "'}]\n",
        "bad-format",
    ),
    "huge-size": (OK + "requires: {ram: '" + "1" * 60_000 + "'}\n", "bad-format"),
    "huge-conda": (OK + "conda_packages: ['" + "a " * 30_000 + "']\n", "bad-format"),
    "huge-choice": (OK + "training: {precision: " + "b" * 60_000 + "}\n", "not-a-choice"),
    "huge-tag": ("a: !" + "x" * 500_000 + " b\n", "tag"),
    "huge-anchor": (OK + "a: &" + "x" * 500_000 + " b\n", "unknown-key"),
    "huge-alias": ("a: *" + "x" * 500_000 + "\n", "alias"),
    "nul": (OK + "name: a\0b\n", "control-character"),
    "utf-16": (OK.encode("utf-16"), "encoding"),
    "utf-16-le": (OK.encode("utf-16-le"), "encoding"),
    "utf-16-be": (OK.encode("utf-16-be"), "encoding"),
    "utf-32": (OK.encode("utf-32"), "encoding"),
    "utf-32-le": (OK.encode("utf-32-le"), "encoding"),
    "utf-32-be": (OK.encode("utf-32-be"), "encoding"),
    "odd-utf-16": (OK.encode("utf-16")[:-1], "encoding"),
    "invalid-utf-8": (OK.encode() + b"name: \xc3\x28\n", "encoding"),
    "overlong-utf-8": (OK.encode() + b"name: \xc0\xaf\n", "encoding"),
    "surrogate-in-utf-8": (OK.encode() + b"name: \xed\xa0\x80\n", "encoding"),
    "bom-only": (b"\xef\xbb\xbf", "empty-document"),
    "bom-inside": ("gpu: L4\n\ufeffpython: 3.12\n", "control-character"),
    "only-comments": ("# a\n# b\n", "empty-document"),
    "empty": ("", "empty-document"),
    "empty-second": (OK + "---\n", "empty-document"),
    "binary": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 100, "encoding"),
    "zeros": (bytes(100_000), "control-character"),
    "tabs": ("gpu:\n\ttype: L4\n", "syntax"),
    "11-documents": ("---\n".join([OK] * 11), "limit"),
    "python-tag": (OK + "name: !!python/object/apply:os.system ['true']\n", "tag"),
    "secret-tag": (OK + "name: !secret x\n", "tag"),
    "verbatim-tag": (OK + "name: !<tag:example.com,2000:x> y\n", "tag"),
    "tag-directive": ("%TAG !e! tag:example.com,2000:\n---\nname: !e!x y\n", "tag"),
    "undefined-handle": ("name: !e!x y\n", "syntax"),
    "list-key": (OK + "? [a, b]\n: c\n", "key-not-text"),
    "mapping-key": (OK + "{a: b}: c\n", "key-not-text"),
    "int-key": (OK + "1: a\n", "key-not-text"),
    "null-key": (OK + "null: a\n", "key-not-text"),
    "true-key": (OK + "true: a\n", "key-not-text"),
    "anchor-on-key": ("&k gpu: L4\npython: *k\npackages: []\nzzz: 1\n", "unknown-key"),
    "anchor-on-alias": ("a: &x 1\nb: &y *x\n", "syntax"),
    "unterminated-single": (OK + "name: 'x\n", "syntax"),
    "unterminated-double": (OK + 'name: "x\n', "syntax"),
    "escape-character": (OK + "name: \x1b[31mred\n", "control-character"),
    "escaped-escape": (OK + 'name: "\\e[31mred\\u202e"\n', "bad-format"),
    "control-in-key": (OK + '"\\e[31m\\u202e": 1\n', "unknown-key"),
    "surrogate-escape": (OK + 'name: "\\ud800"\n', "syntax"),
    "surrogate-pair-escape": (OK + 'name: "\\ud83d\\ude00"\n', "syntax"),
    "huge-escape": (OK + 'name: "\\Uffffffff"\n', "syntax"),
    "long-line": (OK + "packages: [" + "a, " * 300_000 + "]\n", "limit"),
    "yaml-1.1": ("%YAML 1.1\n---\n" + OK, "yaml-version"),
    "yaml-2.0": ("%YAML 2.0\n---\n" + OK, "syntax"),
    "yaml-999": ("%YAML 1.99999999999999999999\n---\n" + OK, "syntax"),
    "duplicate-anchor": ("a: &x 1\nb: &x 2\n", "duplicate-anchor"),
    "extends-itself": ("extends: extends-itself\n", "extends-cycle"),
    "extends-device": ("extends: /dev/zero\n", "extends-outside-root"),
    "line-separators": (OK + "name: 'a\u2028\u2029\u0085b'\n", "bad-format"),
}


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    def make(folder):
        (folder / "cases").mkdir()
        for name, (content, _) in CASES.items():
            raw = content if isinstance(content, bytes) else content.encode()
            (folder / "cases" / name).write_bytes(raw)
        program = Path(__file__).with_name("hostile.py")
        done = subprocess.run(
            [sys.executable, str(program), str(folder / "cases")],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        (folder / "outcomes.json").write_text(done.stdout)
        (folder / "errors.txt").write_text(done.stderr)

    folder = make_once(tmp_path_factory, "hostile", make)
    return json.loads((folder / "outcomes.json").read_text()), (folder / "errors.txt").read_text()


@pytest.mark.parametrize("name", CASES)
def test_hostile_text_ends_in_a_finding_within_limits(outcomes, name):
    outcome = outcomes[0][name]
    assert outcome["status"] == 0, (outcome, outcomes[1][-2_000:])
    assert CASES[name][1] in outcome["said"]["names"]
    assert outcome["cpu_s"] < CPU_LIMIT_S
    assert outcome["rss_kib"] < RSS_LIMIT_KIB
    assert outcome["said"]["longest"] < LONGEST_MESSAGE
    assert outcome["said"]["bad"] == ""


def test_the_limits_bite(tmp_path):
    """A child that does not end is killed, and one that grows is refused memory: the other tests
    would fail for it.
    """
    program = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import hostile\n"
        "def spin(path):\n    while True: pass\n"
        "def grow(path):\n    return {'names': [len(bytes(3 << 30))]}\n"
        "hostile.CPU_SECONDS = 1\n"
        "from pathlib import Path\n"
        "hostile.examine = spin; print(hostile.contain(Path('x'))['status'])\n"
        "hostile.examine = grow; print(hostile.contain(Path('x'))['status'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert [int(line) != 0 for line in done.stdout.split()] == [True, True]
