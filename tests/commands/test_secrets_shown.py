"""A secret that stands in a spec is in nothing that lint writes, in whatever form it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fork_server

SPEC = 'gpu: none\npython: "3.11"\npackages: []\n'
TOKEN = "hf_" + "Zq3" * 10
WORDS = "quiet-otter-lantern"


CASES = (
    (WORDS, f"secrets: {{HF_TOKEN: {WORDS}}}"),
    (WORDS, f"secrets: {{HF_TOKEN: {{env: {WORDS}}}}}"),
    (WORDS, f"secrets: {{HF_TOKEN: [{WORDS}]}}"),
    (WORDS, f"secrets:\n  HF_TOKEN:\n    - one\n    - {WORDS}"),
    ("8675309867", "secrets: {HF_TOKEN: 8675309867}"),
    (WORDS, f"env: {{HF_TOKEN: {WORDS}}}"),
    (WORDS, f"training: {{arguments: {{hub_tokens: [{WORDS}], hub_token: {WORDS}}}}}"),
    (TOKEN, f"env: {{GREETING: {TOKEN}}}\nbogus: {TOKEN}"),
    (TOKEN, f"indexes: {{a: {{url: 'https://user:{TOKEN}@packages.example.com/simple'}}}}"),
    (WORDS, f"indexes: {{a: {{url: 'https://user:{WORDS}@packages.example.com/simple'}}}}"),
    (TOKEN, f"platforms: [{TOKEN}]\nname: {TOKEN}\n{TOKEN}: 1"),
)


@pytest.mark.parametrize(
    "words",
    [("--output-format", form) for form in ("text", "concise", "json", "sarif", "github")]
    + [("--diff",)],
    ids=" ".join,
)
def test_a_secret_is_in_no_form_of_the_findings(tmp_path: Path, words: tuple[str, ...]) -> None:
    files = {f"{number}.yaml": SPEC + line + "\n" for number, (_, line) in enumerate(CASES)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = fork_server.run(
        [*fork_server.ARGV, "lint", *words, *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1, done.stderr
    assert all(name in done.stdout for name in files), "each of them has a finding"
    assert [secret for secret, _ in CASES if secret in done.stdout + done.stderr] == []
