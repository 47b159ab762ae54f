"""Asks the hub that huggingface_hub is set to for an answer. Exit 1 while none comes, or one with a status that CASE does not allow; 0 when one comes."""

import signal
import sys
import urllib.error
import urllib.request

from huggingface_hub import constants

CASE = {"CASE": "HERE"}


def late(*_):
    raise TimeoutError("its answer did not end within 20 s")


signal.signal(signal.SIGALRM, late)
signal.alarm(20)
try:
    status = urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=10).status
except urllib.error.HTTPError as error:
    status = error.code
except (OSError, ValueError) as error:
    sys.exit(f"{constants.ENDPOINT} is not reached: {error}")
print(f"{constants.ENDPOINT} answers with status {status}, wanted is one below {CASE['below']}")
sys.exit(status >= CASE["below"])
