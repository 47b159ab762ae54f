"""Nothing that lies about on a machine decides a lock; passwords stay where they are; proxy and
certificates are passed on.
"""

from __future__ import annotations

import http.server
import json
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from provision.adapters.uv.sources import PipConfig
from provision.agent.install.uv_inputs import scrub_environment
from tests import fork_server
from tests.adapters.serving import behind_password, contents, proxying, running
from tests.rig import Bench, make_index, make_wheel, small_spec

PASSWORD = "pass-w0rd-9f2c"


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """Another index with a newer alpha, which no lock of these tests may hold."""
    return make_index(tmp_path / "elsewhere", (make_wheel(tmp_path / "e", "alpha", "99.0"),))


def hostile(bench: Bench, elsewhere: str) -> dict[str, str]:
    """Variables and files of a machine on which everything points elsewhere."""
    wheels = str(bench.folder.parent / "e")
    settings = (
        f'index-url = "{elsewhere}"\nresolution = "lowest"\nprerelease = '
        f'"allow"\n[pip]\nindex-url = "{elsewhere}"\n'
    )
    for path in (
        bench.folder / "hostile.toml",
        bench.folder / "uv.toml",
        bench.folder / "home/.config/uv/uv.toml",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(settings)
    (bench.folder / "pyproject.toml").write_text(
        f'[project]\nname = "x"\nversion = "0"\n[tool.uv]\nindex-url = "{elsewhere}"\n'
    )
    (bench.folder / "limits.txt").write_text("alpha==1.0\n")
    (bench.folder / "foreign").mkdir()
    (bench.folder / "foreign/alpha.py").write_text("__version__ = 'from PYTHONPATH'")
    urls = dict.fromkeys(
        (
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_INDEX",
            "UV_EXTRA_INDEX_URL",
            "PIP_INDEX_URL",
            "PIP_EXTRA_INDEX_URL",
        ),
        elsewhere,
    )
    limits = dict.fromkeys(
        ("UV_CONSTRAINT", "UV_OVERRIDE", "PIP_CONSTRAINT", "UV_BUILD_CONSTRAINT"),
        str(bench.folder / "limits.txt"),
    )
    return {
        **urls,
        **limits,
        "UV_FIND_LINKS": wheels,
        "UV_CONFIG_FILE": str(bench.folder / "hostile.toml"),
        "UV_TORCH_BACKEND": "cu128",
        "UV_RESOLUTION": "lowest",
        "UV_PRERELEASE": "allow",
        "UV_EXCLUDE_NEWER": "2001-01-01",
        "UV_PYTHON": "3.8",
        "UV_PROJECT_ENVIRONMENT": str(bench.folder / "foreign"),
        "UV_NO_INDEX": "1",
        "UV_REQUIRE_HASHES": "0",
        "PIP_NO_INDEX": "1",
        "PIP_TARGET": str(bench.folder / "foreign"),
        "VIRTUAL_ENV": str(bench.folder / "foreign"),
        "CONDA_PREFIX": str(bench.folder / "foreign"),
    }


def lock_without(part: str, bench: Bench, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run `provision lock` without the caller's variables that have `part` in their name."""
    environment = {
        key: value for key, value in bench.environment(**changes).items() if part not in key.upper()
    }
    return fork_server.run(
        bench.argv("lock", "spec.yaml"),
        cwd=bench.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.long
def test_foreign_variables_and_files_change_neither_lock_nor_environment(
    bench: Bench, elsewhere: str
) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    calm = (bench.folder / "spec.lock").read_bytes()
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    variables = hostile(bench, elsewhere)
    (bench.folder / "spec.lock").unlink()
    done = bench.run("lock", "spec.yaml", **variables)
    assert done.returncode == 0, done.stderr
    assert (bench.folder / "spec.lock").read_bytes() == calm
    applied = bench.run("apply", "spec.yaml", "--yes", **variables)
    assert applied.returncode == 0, applied.stderr + applied.stdout
    told = bench.run(
        "run",
        "spec.yaml",
        "--",
        "python",
        "-c",
        "import alpha; print(alpha.__version__)",
        **variables,
    )
    assert told.stdout == "2.0\n"


def test_a_foreign_pythonpath_is_found_by_the_verification_and_keeps_out_of_the_lock(
    bench: Bench, elsewhere: str
) -> None:
    hostile(bench, elsewhere)
    bench.spec(small_spec("alpha"))
    done = bench.run("apply", "spec.yaml", "--yes", PYTHONPATH=str(bench.folder / "foreign"))
    assert '"version": "2.0"' in (bench.folder / "spec.lock").read_text()
    report = json.loads((bench.own / "reports/spec.local/report.json").read_text())
    assert any(
        "PYTHONPATH" in json.dumps(check)
        for check in report["checks"]
        if check["status"] in ("warn", "fail")
    ), done.stdout


def test_what_uv_is_given_of_the_callers_variables() -> None:
    caller = {
        "PATH": "/bin",
        "HOME": "/home/jane",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "UV_CACHE_DIR": "/cache",
        "UV_OFFLINE": "1",
        "UV_HTTP_TIMEOUT": "99",
        "UV_HTTP_RETRIES": "7",
        "UV_INDEX_PRIVATE_USERNAME": "jane",
        "UV_INDEX_PRIVATE_PASSWORD": PASSWORD,
        "UV_INDEX_URL": "https://elsewhere.example",
        "UV_NO_CONFIG": "0",
        "UV_PYTHON_DOWNLOADS": "automatic",
        "PIP_INDEX_URL": "https://elsewhere.example",
        "PYTHONPATH": "/foreign",
        "PYTHONHOME": "/foreign",
        "VIRTUAL_ENV": "/foreign",
        "CONDA_PREFIX": "/foreign",
    }
    given = scrub_environment(caller)
    kept = {
        "PATH",
        "HOME",
        "HTTPS_PROXY",
        "UV_CACHE_DIR",
        "UV_OFFLINE",
        "UV_HTTP_TIMEOUT",
        "UV_HTTP_RETRIES",
    }
    kept |= {"UV_INDEX_PRIVATE_USERNAME", "UV_INDEX_PRIVATE_PASSWORD"}
    assert {key: value for key, value in given.items() if key in caller and key in kept} == {
        key: caller[key] for key in kept
    }
    assert set(given) - kept == {
        "UV_NO_CONFIG",
        "UV_PYTHON_DOWNLOADS",
        "UV_NO_PROGRESS",
        "NO_COLOR",
        "UV_HTTP_CONNECT_TIMEOUT",
    }
    assert given["UV_NO_CONFIG"] == "1"
    assert given["UV_PYTHON_DOWNLOADS"] == "never"


def test_pips_proxy_and_certificates_count_where_the_caller_says_nothing() -> None:
    pip = PipConfig(proxy="http://pips.example:3128", cert="/pips/ca.pem")
    given = scrub_environment({}, pip.proxy, pip.cert)
    assert (given["HTTP_PROXY"], given["HTTPS_PROXY"], given["SSL_CERT_FILE"]) == (
        pip.proxy,
        pip.proxy,
        pip.cert,
    )
    own = scrub_environment(
        {"https_proxy": "http://own.example:1", "SSL_CERT_FILE": "/own/ca.pem"},
        pip.proxy,
        pip.cert,
    )
    assert (own["https_proxy"], own["SSL_CERT_FILE"], own["HTTP_PROXY"]) == (
        "http://own.example:1",
        "/own/ca.pem",
        pip.proxy,
    )
    assert "HTTPS_PROXY" not in own


@pytest.mark.long(after=1)
@pytest.mark.parametrize("way", ["pip's index-url", "override of a named index", "uv's variables"])
def test_a_password_opens_an_index_and_is_seen_nowhere(
    bench: Bench, tmp_path: Path, way: str
) -> None:
    argvs: set[str] = set()
    scratch: set[bytes] = set()
    (tmp_path / "scratch").mkdir()

    def look() -> None:
        argvs.update(running())
        scratch.update(contents(tmp_path / "scratch"))

    make_index(
        tmp_path / "private",
        (make_wheel(tmp_path / "p", "alpha", "3.0"), make_wheel(tmp_path / "p", "delta", "1.0")),
    )
    with behind_password(tmp_path / "private", "jane", PASSWORD, look) as place:
        secret = f"http://jane:{PASSWORD}@{place}/"
        named = small_spec(
            "alpha",
            "{name: delta, index: private}",
            extra=f"indexes: {{private: {{url: 'http://{place}'}}}}\n",
        )
        text, variables, index = {
            "pip's index-url": (
                small_spec("alpha", "delta"),
                {"PROVISION_INDEX_PYPI": "", "PIP_INDEX_URL": secret},
                "pypi",
            ),
            "override of a named index": (named, {"PROVISION_INDEX_PRIVATE": secret}, "private"),
            "uv's variables": (
                named,
                {"UV_INDEX_PRIVATE_USERNAME": "jane", "UV_INDEX_PRIVATE_PASSWORD": PASSWORD},
                "private",
            ),
        }[way]
        variables |= {"TMPDIR": str(tmp_path / "scratch")}
        bench.spec(text)
        done = [bench.run("apply", "spec.yaml", "--yes", **variables)]
        assert done[0].returncode == 0, done[0].stderr
        lock = json.loads((bench.folder / "spec.lock").read_text())
        assert {package["name"]: package["index"] for package in lock["packages"]}["delta"] == index
        bench.spec(text.replace("alpha", "alpha==7.7"))
        done += [
            bench.run("lock", "spec.yaml", **variables),
            bench.run("plan", "spec.yaml", "--output-format", "json", **variables),
        ]
        assert [one.returncode for one in done[1:]] == [1, 1]
    done += [bench.run("lock", "spec.yaml", UV_CACHE_DIR=str(tmp_path / "cold"), **variables)]
    assert done[-1].returncode == 2, "the server is gone"
    for one in done:
        assert PASSWORD not in one.stdout + one.stderr
    assert not any(PASSWORD in argv for argv in argvs)
    assert not Path("/proc/self").exists() or any("uv" in argv for argv in argvs), (
        "the command lines were looked at while uv was at work"
    )
    assert any(b"provision-scratch" in content for content in scratch), (
        "the scratch folder was looked at while uv was at work"
    )
    assert not any(PASSWORD.encode() in content for content in scratch), (
        "a kill would leave it there"
    )
    held = [
        path
        for path in bench.folder.rglob("*")
        if path.is_file() and not path.is_symlink() and PASSWORD.encode() in path.read_bytes()
    ]
    assert held == []


def test_a_password_may_hold_what_addresses_escape(bench: Bench, tmp_path: Path) -> None:
    make_index(tmp_path / "private", (make_wheel(tmp_path / "p", "delta", "1.0"),))
    with behind_password(tmp_path / "private", "jane@home", "a:b/c@d%") as place:
        bench.spec(
            small_spec(
                "{name: delta, index: my-own}",
                extra=f"indexes: {{my-own: {{url: 'http://{place}'}}}}\n",
            )
        )
        address = f"http://jane%40home:a%3Ab%2Fc%40d%25@{place}/"
        done = bench.run("lock", "spec.yaml", PROVISION_INDEX_MY_OWN=address)
    assert done.returncode == 0, done.stderr
    assert "index my-own: http://***@" in done.stderr


def test_a_refused_password_is_not_taken_for_a_missing_package(
    bench: Bench, tmp_path: Path
) -> None:
    make_index(tmp_path / "private", (make_wheel(tmp_path / "p", "alpha", "3.0"),))
    with behind_password(tmp_path / "private", "jane", PASSWORD) as place:
        bench.spec(small_spec("alpha"))
        done = bench.run(
            "lock",
            "spec.yaml",
            PROVISION_INDEX_PYPI="",
            PIP_INDEX_URL=f"http://jane:wrong-{PASSWORD}@{place}",
        )
    assert done.returncode == 2
    assert "requires credentials, or rejected them" in done.stderr
    assert "index-url" in done.stderr
    assert PASSWORD not in done.stderr


def test_pips_proxy_is_used(bench: Bench, tmp_path: Path) -> None:
    seen: list[str] = []
    with proxying(tmp_path / "index", seen) as place:
        configuration = tmp_path / "pip.conf"
        configuration.write_text(
            f"[global]\nindex-url = http://index.invalid/\nproxy = http://{place}\n"
        )
        bench.spec(small_spec("alpha"))
        done = lock_without(
            "_PROXY", bench, PROVISION_INDEX_PYPI="", PIP_CONFIG_FILE=str(configuration)
        )
    assert done.returncode == 0, done.stderr
    assert "http://index.invalid/alpha/" in seen


def test_pips_certificates_are_used(bench: Bench, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("a certificate is made with openssl, which is not here")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = [
        "-subj",
        "/CN=rig",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
        *subject,
    ]
    subprocess.run(made, check=True, capture_output=True)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0),
        lambda *a: http.server.SimpleHTTPRequestHandler(*a, directory=str(tmp_path / "index")),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bench.spec(small_spec("alpha"))
    address = f"https://127.0.0.1:{server.server_address[1]}"
    try:
        refused = lock_without("SSL_CERT_", bench, PROVISION_INDEX_PYPI=address)
        done = lock_without(
            "SSL_CERT_", bench, PROVISION_INDEX_PYPI=address, PIP_CERT=str(certificate)
        )
    finally:
        server.shutdown()
        server.server_close()
    assert refused.returncode == 2
    assert "certificates" in refused.stderr
    assert done.returncode == 0, done.stderr
