"""Compares the clock with this environment's files, and with the hub's where CASE says so. Exit 1 while it is off by more than the seconds of CASE, else 0."""

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime

CASE = {"CASE": "HERE"}


def late(*_):
    raise TimeoutError("its answer did not end within 20 s")


files = [os.path.join(sys.prefix, name) for name in ("pyvenv.cfg", "installed.json", "conda-meta")]
stamps = [os.path.getmtime(name) for name in files if os.path.exists(name)]
off = [time.time() - max(stamps)] if stamps else []
if CASE["hub"]:
    from huggingface_hub import constants

    signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        headers = urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=10).headers
    except urllib.error.HTTPError as error:
        headers = error.headers
    except OSError as error:
        print(f"{constants.ENDPOINT} is not reached: {error}")
        sys.exit(2)
    off = [*off, time.time() - parsedate_to_datetime(headers["Date"]).timestamp()]
if not off:
    print("nothing here tells a time to compare the clock with")
    sys.exit(2)
print(f"the clock is {off[0]:.0f} s past the newest file of {sys.prefix}" + (f", and {off[-1]:.0f} s ahead of the hub's" if CASE["hub"] else ""))
sys.exit(min(off) < -CASE["seconds"] or (CASE["hub"] and abs(off[-1]) > CASE["seconds"]))
