"""Says which torch is imported, and for which CUDA it is built. Exit 1 while it is another than CASE wants, 0 when it is that one."""

import sys

import torch

CASE = {"CASE": "HERE"}

built = "cu" + torch.version.cuda.replace(".", "") if torch.version.cuda else "cpu"
print(f"torch {torch.__version__} from {torch.__file__}, built for {built}; wanted is {CASE['version']}, built for {CASE['flavour'] or 'anything'}")
# The wheels on the default index say their build only when they are asked.
same = str(torch.__version__) == CASE["version"] or str(torch.__version__).partition("+")[0] == CASE["version"]
sys.exit(not same or CASE["flavour"] not in (None, built))
