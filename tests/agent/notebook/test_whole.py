"""All stages of the cell, run as one file on a real interpreter with the real uv, installer and
probe.
"""

from __future__ import annotations

from tests.agent.notebook.bench import Runtime


def test_a_runtime_is_brought_to_the_lock_and_proven_and_the_second_run_installs_nothing(
    runtime: Runtime,
) -> None:
    runtime.bring("alpha==1.0", "gamma==1.0", "theirs==1.0")
    folder = runtime.lay_out(
        runtime.document(
            "alpha==1.0", "beta==1.0", "gamma==2.0", env={"A": "b"}, expectations__env={"A": "b"}
        )
    )
    first = runtime.start(folder)
    assert (first.returncode, first.stderr) == (0, ""), first.stdout
    assert runtime.status["outcome"] == "verified"
    assert runtime.status["counts"] == {"hash-checked": 1, "preinstalled": 1, "reinstalled": 1}
    report = (runtime.base / "report.json").read_bytes()
    second = runtime.start(folder)
    assert (second.returncode, second.stderr) == (0, "")
    assert "nothing to install" in second.stdout
    assert "stored report" in second.stdout
    assert runtime.status["installed_now"] == 0
    assert (runtime.base / "report.json").read_bytes() == report
    assert (runtime.packages / "theirs").is_dir()
