"""Compiles a small function with torch.compile, with an empty cache. Exit 1 while that raises or it computes something else, 0 when it computes the same."""

import os
import sys
import tempfile

CASE = {"CASE": "HERE"}

with tempfile.TemporaryDirectory() as folder:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        os.environ[name] = os.path.join(folder, name.lower())
    import torch

    if CASE["device"] == "cuda" and not torch.cuda.is_available():
        print(f"torch {torch.__version__} sees no card")
        sys.exit(2)

    def written(x, w):
        return torch.nn.functional.gelu(torch.nn.functional.layer_norm(x @ w, (64,))).sum(-1)

    generator = torch.Generator().manual_seed(20)
    operands = [torch.randn(shape, generator=generator).to(CASE["device"]) for shape in ((32, 64), (64, 64))]
    plain, made = written(*operands), torch.compile(written)(*operands)
    error = float((made - plain).norm() / plain.norm())
print(f"compiled on {CASE['device']}: relative error {error:.3g}, at most {CASE['bound']:g} wanted")
sys.exit(not error <= CASE["bound"])
