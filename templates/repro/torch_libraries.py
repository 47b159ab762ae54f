"""Says which cuDNN, NCCL and Triton torch has loaded. Exit 1 while one is another than CASE wants or is not there, 0 when all are those."""

import sys

import torch

CASE = {"CASE": "HERE"}

found = {}
if torch.backends.cudnn.version():
    number, unit = torch.backends.cudnn.version(), 10000 if torch.backends.cudnn.version() >= 90000 else 1000
    found["cudnn"] = f"{number // unit}.{number % unit // 100}.{number % 100}"
if hasattr(torch._C, "_nccl_version"):
    found["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
if "triton" in CASE["libraries"]:
    import triton

    found["triton"] = triton.__version__
wrong = 0
for name, wanted in CASE["libraries"].items():
    # A library tells three numbers of its version, the package around it may have a fourth.
    same = found.get(name, "").partition("+")[0].split(".")[:3] == wanted.partition("+")[0].split(".")[:3]
    print(f"{name}: {found.get(name, 'not there')}, wanted is {wanted}")
    wrong += not same
sys.exit(wrong > 0)
