"""The cell's text: the same bytes every time, data where a spec speaks, and a payload that is the
one it was made with or nothing.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import json
import lzma
import os
import random
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from provision.agent.core.code_files import ARCHIVE, CodeFile, CodeManifest, pack_code
from provision.facts import Facts, load_facts
from provision.sandbox.serve import serve
from provision.targets.colab.cell import (
    fill_template,
    is_same_cell,
    parse_about,
    read_template,
    render_cell,
    to_literal,
)
from provision.targets.colab.notebook import format_code
from provision.targets.colab.payload import (
    PayloadTooLargeError,
    build_payload,
    compress,
    decode_payload,
    digest_payload,
    encode_payload,
)
from provision.targets.colab.rendered_files import render_files
from tests.rig import served
from tests.support import require
from tests.targets.colab_places import place

COLAB_PAGE = Path(__file__).parents[2] / "docs/how-to/colab.md"
HOSTILE = (
    '"""',
    "'''",
    "\\",
    '\\"',
    "a\n!rm -rf ~",
    "!rm -rf ~",
    "%%bash",
    "%run x.py",
    "a\r\n%%html\n<script>",
    "? help",
    "x ?",
    ">>> import os",
    "In [1]: x",
    "{ABOUT}",
    '{"ABOUT": "HERE"}',
    "]\n}\nimport os",
    "\u2028!ls\u2029",
    "\x85\x0b\x0c\x1c%%x",
    "\U0001f600 \ud7ff \uffff",
    "${HOME} `id` $(id)",
    '# @param {type:"raw"}',
    "{{x}} {%- x %}",
)
STUB = """
import json, os, sys

class Stopped(Exception):
    pass

def start(folder, *, continue_anyway, restart):
    document = json.load(open(os.path.join(folder, "document.json")))
    seen = {"folder": folder, "members": sorted(os.listdir(folder)), "env": document["env"]}
    print(json.dumps({**seen, "continue_anyway": continue_anyway, "restart": restart}))

def verify(folder):
    print(json.dumps({"verify": folder}))

def run(folder, argv):
    print(json.dumps({"run": argv}))
"""


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def stub_payload(document: str = '{"env": {}}', code: str = STUB) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("provision_cell/__init__.py", code)
    return build_payload(
        document.encode(), {"cell.pyz": buffer.getvalue(), "installer.pyz": b"i", "probe.pyz": b"p"}
    )


def stub_cell(payload: bytes, *urls: str) -> str:
    return render_cell(
        {
            "what": "a test",
            "make_again": "provision render spec.yaml",
            "payload_sha256": digest_payload(payload),
            "embed": "put the payload into the cell: set `payload: embedded` on target `colab`",
        },
        [] if urls else encode_payload(payload),
        urls,
    )


def executed(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder / "home"), "TMPDIR": str(folder), **variables}
    (folder / "home").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-I", "-"],
        input=text,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_cell_has_the_same_bytes_every_time(facts: Facts) -> None:
    compress.cache_clear()
    first = render_files(place(), facts)
    compress.cache_clear()
    assert render_files(place(), facts) == first
    assert first.cell.isascii()
    written = re.search(r"A cell is about (\d+) KB", COLAB_PAGE.read_text(encoding="utf-8"))
    assert written
    assert abs(len(first.cell) / 1000 - int(written[1])) < 30
    assert max(len(line) for line in first.cell.splitlines()) <= 160


def test_a_cell_says_at_its_top_what_it_is(facts: Facts) -> None:
    made = render_files(place(), facts)
    top = "\n".join(made.cell.splitlines()[:25])
    assert "# Written by `provision render`." in top
    about = parse_about(made.cell)
    assert about is not None
    assert about["spec"] in top
    assert about["lock"] == place().lock.digest
    assert about["make_again"] == "provision render spec.yaml --target colab"
    assert about["nonce"] == made.nonce
    assert list(about)[-1] == "payload"


def test_the_payload_holds_the_document_and_the_programs(facts: Facts) -> None:
    made = render_files(place(env={"A": "b"}), facts)
    with zipfile.ZipFile(io.BytesIO(made.payload)) as archive:
        assert archive.namelist() == ["cell.pyz", "installer.pyz", "probe.pyz", "document.json"]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert json.loads(archive.read("document.json"))["env"] == {"A": "b"}
        for name in ("cell.pyz", "installer.pyz", "probe.pyz"):
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
                assert {entry.compress_type for entry in inner.infolist()} == {zipfile.ZIP_STORED}
    assert decode_payload(parse_about(made.cell)["payload"]) == made.payload  # type: ignore[index]
    assert digest_payload(made.payload) == made.sha256


# Data only.


def test_hostile_values_of_a_spec_are_data(facts: Facts) -> None:
    env = {f"V{number}": value for number, value in enumerate(HOSTILE)}
    made = render_files(
        place(stem="a \"'`b\n!ls %%x", env=env), facts, spec_file="a \"'`b\n!ls %%x.yaml"
    )
    compile(made.cell, "cell", "exec")
    assert TransformerManager().transform_cell(made.cell) == made.cell
    assert not [line for line in made.cell.split("\n") if line.lstrip().startswith(("!", "%"))]
    with zipfile.ZipFile(io.BytesIO(decode_payload(parse_about(made.cell)["payload"]))) as archive:  # type: ignore[index]
        assert json.loads(archive.read("document.json"))["env"] == env
    for one in made.notebook["cells"]:
        if one["cell_type"] == "code":
            text = "".join(one["source"])
            assert TransformerManager().transform_cell(f"{text}\n") == f"{text}\n"


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.text(max_size=200) | st.lists(st.text(max_size=50), max_size=4),
        max_size=4,
    )
)
@settings(max_examples=300)
def test_whatever_text_is_a_literal_of_itself(about: dict[str, str | list[str]]) -> None:
    text = to_literal(about)
    assert ast.literal_eval(text) == about
    assert text.isascii()
    program = f"ABOUT = {text}\n"
    assert TransformerManager().transform_cell(program) == program
    assert parse_about(program) == about


@given(st.text(max_size=60))
def test_whatever_text_stays_code_in_markdown(text: str) -> None:
    said = format_code(text)
    assert "\n" not in said
    fence = said[: len(said) - len(said.lstrip("`"))]
    inner = said[len(fence) : -len(fence)]
    assert fence
    assert said.endswith(fence)
    assert fence not in [run for run in inner.replace("`", " ` ").split(" ") if run]


def test_the_templates_have_one_placeholder_and_are_programs() -> None:
    for template in (read_template("cell"), read_template("verify"), read_template("run")):
        compile(template, "template", "exec")
        assert template.count('{"ABOUT": "HERE"}') == 1
        assert fill_template(template, {"a": "b"}).count("HERE") == 0


# The same cell, whatever packed it.


def repacked(text: str, payload: bytes) -> str:
    about = parse_about(text)
    assert about is not None
    other = base64.b85encode(lzma.compress(payload, preset=1)).decode()
    return text.replace(
        to_literal(about),
        to_literal(
            {
                **about,
                "payload": [other[start : start + 120] for start in range(0, len(other), 120)],
            }
        ),
    )


def test_a_payload_that_was_compressed_otherwise_is_the_same() -> None:
    payload = stub_payload()
    text = stub_cell(payload)
    other = repacked(text, payload)
    assert other != text
    assert is_same_cell(other, text)
    assert is_same_cell(text, other)


def test_parts_of_an_existing_payload_are_not_compressed_again() -> None:
    payload, changed = stub_payload(), stub_payload('{"env": {"A": "b"}}')
    existing = encode_payload(payload)
    compress.cache_clear()
    assert encode_payload(payload, existing) == existing
    assert compress.cache_info().misses == 0
    lines = encode_payload(changed, existing)
    assert compress.cache_info().misses == 1
    assert decode_payload(lines) == changed
    for damaged in (("x y",), (existing[0][:50],), (), 3, ("".join(existing)[:-5],)):
        assert decode_payload(encode_payload(changed, damaged)) == changed  # type: ignore[arg-type]


def code_payload(contents: dict[str, bytes]) -> bytes:
    rows = [
        CodeFile(path, 0o100644, hashlib.sha256(content).hexdigest())
        for path, content in contents.items()
    ]
    return build_payload(b"{}", {ARCHIVE: pack_code(CodeManifest(tuple(rows)), contents)})


def test_after_an_edit_one_group_of_files_is_compressed() -> None:
    draw = random.Random(1)
    contents = {f"a{number}.py": draw.randbytes(64) * 256 for number in range(200)}
    compress.cache_clear()
    existing = encode_payload(code_payload(contents))
    assert compress.cache_info().misses > 6
    compress.cache_clear()
    edited = code_payload({**contents, "a117.py": draw.randbytes(64) * 258, "new.py": b"1"})
    lines = encode_payload(edited, existing)
    # The digest, two groups, and what follows the code.
    assert compress.cache_info().misses <= 4
    assert decode_payload(lines) == edited


def test_parts_with_the_same_content_are_all_there() -> None:
    payload = code_payload({"zeros.bin": bytes(2**22)})
    assert decode_payload(encode_payload(payload, encode_payload(payload))) == payload


def test_a_payload_that_is_too_large_is_not_compressed_to_its_end() -> None:
    contents = {f"data{number}.bin": random.Random(number).randbytes(2**22) for number in range(3)}
    payload = code_payload({**contents, "train.py": b"print(1)"})
    compress.cache_clear()
    with pytest.raises(PayloadTooLargeError) as error:
        encode_payload(payload)
    assert str(error.value) == "data0.bin (4096 KiB), data1.bin (4096 KiB), data2.bin (4096 KiB)"
    assert compress.cache_info().misses <= 3


def test_an_edited_description_of_the_code_makes_another_cell() -> None:
    payload = stub_payload()

    def make(code: bytes) -> str:
        return render_cell({"what": "a test"}, encode_payload(payload), (), encode_payload(code))

    text = make(b"{}")
    assert is_same_cell(make(b"{}"), text)
    assert not is_same_cell(make(b"[]"), text)
    assert not is_same_cell(re.sub(r'"code": \[.*?\]', '"code": 3', text, flags=re.DOTALL), text)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (
            lambda text: text.replace("CONTINUE_ANYWAY = False", "CONTINUE_ANYWAY = True"),
            "another choice",
        ),
        (lambda text: text + "print()\n", "more program"),
        (lambda text: text.replace("a test", "another test"), "another word"),
        (lambda text: repacked(text, stub_payload('{"env": {"A": "b"}}')), "another payload"),
        (lambda text: text.replace("ABOUT = {", "ABOUT = 1 + {"), "no document"),
        (lambda text: "", "nothing"),
        (lambda text: "ABOUT = {'payload': 3}", "no lines"),
        (lambda text: "ABOUT = {'payload': ['x y']}", "no payload"),
        (lambda text: "(" * 10_000, "no program"),
        (lambda text: "ABOUT = {x: 1}", "no literal"),
        (lambda text: "\0", "no text"),
    ],
)
def test_another_cell_is_another(edit: object, why: str) -> None:
    text = stub_cell(stub_payload())
    assert not is_same_cell(edit(text), text), why  # type: ignore[operator]
    assert not is_same_cell(text, edit(text)), why  # type: ignore[operator]


# What the cell does before its program begins.


def test_a_cell_unpacks_itself_and_starts(tmp_path: Path) -> None:
    payload = stub_payload()
    done = executed(stub_cell(payload), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base"))
    told = json.loads(done.stdout)
    assert told == {
        "folder": str(tmp_path / "base" / digest_payload(payload)[:12]),
        "members": ["cell.pyz", "document.json", "installer.pyz", "probe.pyz"],
        "continue_anyway": False,
        "restart": False,
        "env": {},
    }


def test_its_choices_are_handed_on(tmp_path: Path) -> None:
    text = (
        stub_cell(stub_payload())
        .replace("CONTINUE_ANYWAY = False", "CONTINUE_ANYWAY = True")
        .replace("RESTART_WHEN_NEEDED = False", "RESTART_WHEN_NEEDED = True")
    )
    told = json.loads(executed(text, tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base")).stdout)
    assert (told["continue_anyway"], told["restart"]) == (True, True)


def test_hostile_values_arrive_as_they_are(tmp_path: Path, facts: Facts) -> None:
    env = {f"V{number}": value for number, value in enumerate(HOSTILE)}
    about = parse_about(render_files(place(env=env, stem="a\n'\"\\!"), facts).cell)
    assert about is not None
    payload = stub_payload(json.dumps({"env": env}))
    done = executed(
        render_cell({**about, "payload_sha256": digest_payload(payload)}, encode_payload(payload)),
        tmp_path,
        PROVISION_CELL_BASE=str(tmp_path / "base"),
    )
    assert json.loads(done.stdout)["env"] == env


def test_without_a_base_of_its_own_it_works_in_the_home_folder(tmp_path: Path) -> None:
    done = executed(stub_cell(stub_payload()), tmp_path)
    expected = (
        Path("/content/.provision")
        if Path("/content").is_dir()
        else tmp_path / "home/.provision-colab"
    )
    assert Path(json.loads(done.stdout)["folder"]).parent == expected


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder would be")
    done = executed(
        stub_cell(stub_payload()), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "taken")
    )
    assert "taken" not in json.loads(done.stdout)["folder"]


@pytest.mark.root
@pytest.mark.parametrize("whose", ["base", "base/DIGEST"])
def test_a_folder_of_another_user_is_passed_over(whose: str, tmp_path: Path) -> None:
    require("root", os.getuid() == 0, "only root can give a folder away")
    payload = stub_payload()
    folder = tmp_path / "base" / digest_payload(payload)[:12]
    folder.mkdir(parents=True)
    os.chown(folder if "DIGEST" in whose else tmp_path / "base", 12345, 12345)
    done = executed(stub_cell(payload), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base"))
    assert not json.loads(done.stdout)["folder"].startswith(str(tmp_path / "base"))
    (folder / "cell.pyz").write_bytes(b"")
    found = executed(
        fill_template(read_template("verify"), {"payload_sha256": digest_payload(payload)}),
        tmp_path,
        PROVISION_CELL_BASE=str(tmp_path / "base"),
    )
    assert not json.loads(found.stdout)["verify"].startswith(str(tmp_path / "base"))


def test_a_file_that_was_changed_there_is_put_right(tmp_path: Path) -> None:
    payload = stub_payload()
    folder = tmp_path / "base" / digest_payload(payload)[:12]
    folder.mkdir(parents=True)
    (folder / "cell.pyz").write_bytes(stub_payload())
    (folder / "document.json").write_text('{"env": {"A": "changed"}}')
    assert (
        json.loads(
            executed(
                stub_cell(payload), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base")
            ).stdout
        )["env"]
        == {}
    )


def test_a_newer_cell_in_the_same_session_brings_its_own_program(tmp_path: Path) -> None:
    first, second = (
        stub_payload(),
        stub_payload(code=STUB.replace('"folder": folder', '"second": folder')),
    )
    done = executed(
        stub_cell(first) + stub_cell(second), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base")
    )
    one, other = (json.loads(line) for line in done.stdout.splitlines())
    assert ("folder" in one, "second" in other) == (True, True)


def _cut(text: str) -> str:
    lines = text.split("\n")
    start = next(number for number, line in enumerate(lines) if '"payload": [' in line)
    return "\n".join([*lines[: start + 2], *lines[start + 3 :]])


def _turned(text: str) -> str:
    start = text.index('"payload": [\n        "') + len('"payload": [\n        "') + 30
    return text[:start] + ("A" if text[start] != "A" else "B") + text[start + 1 :]


@pytest.mark.parametrize(
    "edit",
    [
        _cut,
        _turned,
        lambda text: text.replace('"payload": [', '"payload": [] and ['),
        lambda text: text.replace('sha256": "', 'sha256": "0'),
    ],
)
def test_a_cell_that_was_cut_or_edited_is_refused_and_changes_nothing(
    edit: object, tmp_path: Path
) -> None:
    done = executed(
        edit(stub_cell(stub_payload())), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base")
    )  # type: ignore[operator]
    assert done.returncode == 1
    assert (
        "this cell was edited or is incomplete: its payload does not match its digest"
        in done.stderr
    )
    assert "render the cell again: provision render spec.yaml" in done.stderr
    assert not (tmp_path / "base").exists()


def test_in_a_notebook_a_refusal_has_no_traceback(tmp_path: Path) -> None:
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\nimport "
        "sys\nInteractiveShell.instance().run_cell(sys.stdin.read())\n"
    )
    environment = {
        **os.environ,
        "PROVISION_CELL_BASE": str(tmp_path / "base"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=_turned(stub_cell(stub_payload())),
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.startswith("provision: this cell was edited or is incomplete")
    assert "Traceback" not in done.stdout + done.stderr
    assert "line" not in done.stdout


# The payload apart from the cell.


def test_a_payload_can_be_fetched(tmp_path: Path) -> None:
    payload = stub_payload()
    (tmp_path / "served").mkdir()
    (tmp_path / "served/spec.payload").write_bytes(payload)
    with served(tmp_path / "served") as address:
        done = executed(
            stub_cell(payload, f"{address}/spec.payload"),
            tmp_path,
            PROVISION_CELL_BASE=str(tmp_path / "base"),
        )
    assert json.loads(done.stdout)["members"] == [
        "cell.pyz",
        "document.json",
        "installer.pyz",
        "probe.pyz",
    ]


def test_another_payload_at_that_address_is_refused(tmp_path: Path) -> None:
    payload = stub_payload()
    (tmp_path / "served").mkdir()
    (tmp_path / "served/spec.payload").write_bytes(payload[:-1])
    with served(tmp_path / "served") as address:
        done = executed(
            stub_cell(payload, f"{address}/spec.payload"),
            tmp_path,
            PROVISION_CELL_BASE=str(tmp_path / "base"),
        )
        gone = executed(
            stub_cell(payload, f"{address}/other.payload"),
            tmp_path,
            PROVISION_CELL_BASE=str(tmp_path / "base"),
        )
    assert "spec.payload: this file is not the payload of this cell" in done.stderr
    assert "cannot fetch the payload of this cell" in gone.stderr
    assert "other.payload: HTTP Error 404" in gone.stderr
    assert "run this cell again when the payload can be fetched" in gone.stderr
    assert "or put the payload into the cell: set `payload: embedded`" in gone.stderr
    assert not (tmp_path / "base").exists()


def test_the_first_address_with_the_payload_is_taken(tmp_path: Path) -> None:
    payload = stub_payload()
    (tmp_path / "served").mkdir()
    (tmp_path / "served/spec.payload").write_bytes(payload)
    (tmp_path / "served/newer.payload").write_bytes(b"another")
    base = str(tmp_path / "base")
    with served(tmp_path / "served") as address:
        urls = [f"{address}/{name}.payload" for name in ("newer", "absent", "spec")]
        done = executed(stub_cell(payload, *urls), tmp_path, PROVISION_CELL_BASE=base)
    assert json.loads(done.stdout)["members"]


def test_a_payload_in_a_bucket_is_fetched(tmp_path: Path) -> None:
    payload, address = stub_payload(), "gs://my-bucket/p q/n/spec.payload"
    base = str(tmp_path / "base")
    with serve(tmp_path / "sandbox") as running:
        running.store.make_bucket("my-bucket")
        running.store.put_object("my-bucket", "p q/n/spec.payload", payload)
        server = {"STORAGE_EMULATOR_HOST": running.endpoints["storage"]}
        done = executed(stub_cell(payload, address), tmp_path, PROVISION_CELL_BASE=base, **server)
        gone = executed(
            stub_cell(payload, f"{address}2"), tmp_path, PROVISION_CELL_BASE=base, **server
        )
    assert json.loads(done.stdout)["members"]
    assert f"{address}2: HTTP Error 404" in gone.stderr
    refused = executed(stub_cell(payload, address), tmp_path, PROVISION_CELL_BASE=base)
    assert f"{address}: no access to Google Cloud (" in refused.stderr


def test_a_cell_that_fetches_holds_an_address_in_place_of_the_payload(facts: Facts) -> None:
    made = render_files(place(), facts, url="https://example.com/spec.colab.payload")
    about = parse_about(made.cell)
    assert about is not None
    assert (about["payload"], about["payload_urls"]) == (
        [],
        ["https://example.com/spec.colab.payload"],
    )
    assert about["embed"] == (
        "put the payload into the cell: provision render spec.yaml --target colab"
    )
    assert about["payload_sha256"] == digest_payload(made.merge_files({})["spec.colab.payload"])
    assert about["make_again"].endswith(" --payload-url https://example.com/spec.colab.payload")
    assert made.nonce == render_files(place(), facts).nonce


# The other cells.


def test_the_other_cells_find_what_the_first_one_laid_out(tmp_path: Path) -> None:
    payload = stub_payload()
    found = {"payload_sha256": digest_payload(payload)}
    base = str(tmp_path / "base")
    early = executed(
        fill_template(read_template("verify"), found), tmp_path, PROVISION_CELL_BASE=base
    )
    assert "the environment is not set up on this runtime" in early.stderr
    executed(stub_cell(payload), tmp_path, PROVISION_CELL_BASE=base)
    done = executed(
        fill_template(read_template("verify"), found), tmp_path, PROVISION_CELL_BASE=base
    )
    assert json.loads(done.stdout) == {
        "verify": str(tmp_path / "base" / digest_payload(payload)[:12])
    }
    script = fill_template(read_template("run"), found)
    assert "SCRIPT is empty" in executed(script, tmp_path, PROVISION_CELL_BASE=base).stderr
    named = executed(
        script.replace('SCRIPT = ""', "SCRIPT = \"train.py --name 'a b'\""),
        tmp_path,
        PROVISION_CELL_BASE=base,
    )
    assert json.loads(named.stdout) == {"run": ["train.py", "--name", "a b"]}


def test_a_cell_of_another_payload_is_not_found(tmp_path: Path) -> None:
    executed(stub_cell(stub_payload()), tmp_path, PROVISION_CELL_BASE=str(tmp_path / "base"))
    done = executed(
        fill_template(read_template("verify"), {"payload_sha256": "0" * 64}),
        tmp_path,
        PROVISION_CELL_BASE=str(tmp_path / "base"),
    )
    assert "is not set up on this runtime" in done.stderr


def test_the_run_cell_is_there_for_an_environment_of_its_own_only(facts: Facts) -> None:
    names = {
        target: [one["id"] for one in render_files(replace(place(target)), facts).notebook["cells"]]
        for target in ("colab", "apart")
    }
    assert "provision-run" not in names["colab"]
    assert "provision-run" in names["apart"]


def test_text_that_expands_to_gigabytes_is_not_read() -> None:
    part = lzma.compress(bytes(2**26), format=lzma.FORMAT_XZ, preset=0)
    assert len(decode_payload([base64.b85encode(part).decode()])) == 2**26
    with pytest.raises(ValueError, match="too large"):
        decode_payload([base64.b85encode(3 * part).decode()])
