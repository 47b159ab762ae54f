"""Looks at this machine's system, kernel, C library, text encoding and home folder, as far as CASE names them. Exit 1 while one is another, 0 when all fit."""

import locale
import os
import platform
import re
import sys

CASE = {"CASE": "HERE"}


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version or "0")[:2]]


machine = {"amd64": "x86_64", "arm64": "arm64", "aarch64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
here = f"{ {'linux': 'linux', 'darwin': 'macos', 'win32': 'windows'}.get(sys.platform, sys.platform) }-{machine}"
libc = platform.libc_ver()[1] if platform.libc_ver()[0] == "glibc" else None
encoding = locale.getpreferredencoding(False).lower().replace("-", "").replace("_", "")
home = os.path.expanduser("~")

wrong = []
if CASE.get("platform") and here != CASE["platform"]:
    wrong.append(f"this machine is {here}, wanted is {CASE['platform']}")
if CASE.get("glibc") and (libc is None or numbers(libc) < numbers(CASE["glibc"])):
    wrong.append(f"glibc is {libc}, wanted is {CASE['glibc']} or newer")
if CASE.get("kernel") and numbers(platform.release()) < numbers(CASE["kernel"]):
    wrong.append(f"the kernel is {platform.release()}, wanted is {CASE['kernel']} or newer")
if CASE.get("utf8") and encoding != "utf8":
    wrong.append(f"text files are read as {encoding}, wanted is utf8")
if CASE.get("home") and not (os.path.isdir(home) and os.access(home, os.W_OK)):
    wrong.append(f"the home folder {home} cannot be written")
print("\n".join(wrong) or "as it should be")
sys.exit(bool(wrong))
