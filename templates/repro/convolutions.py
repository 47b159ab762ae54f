"""Convolves numbers forwards and backwards, in fp32 on the device and in float64 on the CPU. Exit 1 while they differ by more than CASE says, else 0."""

import sys

import torch
from torch.nn.functional import conv1d, conv2d

CASE = {"CASE": "HERE"}


def results(convolve, shapes, device, kind):
    generator = torch.Generator().manual_seed(20)
    leaves = [torch.randn(shape, generator=generator).to(device, kind).requires_grad_() for shape in shapes]
    result = convolve(*leaves, padding=1)
    result.backward(torch.randn(result.shape, generator=torch.Generator().manual_seed(21)).to(device, kind))
    return [result.detach(), *(leaf.grad for leaf in leaves)]


if CASE["device"] == "cuda" and not torch.cuda.is_available():
    print(f"torch {torch.__version__} sees no card")
    sys.exit(2)
torch.backends.cudnn.enabled = CASE["cudnn"]
wrong = 0
for convolve, shapes in ((conv1d, ((2, 16, 128), (32, 16, 5))), (conv2d, ((2, 16, 16, 16), (32, 16, 3, 3)))):
    pairs = zip(results(convolve, shapes, CASE["device"], torch.float32), results(convolve, shapes, "cpu", torch.float64), strict=True)
    for what, (computed, truth) in zip(("result", "gradient of the input", "gradient of the weights"), pairs, strict=True):
        apart = (computed.double().cpu() - truth).abs()
        error, element = float(apart.norm() / truth.norm()), float(apart.max() / truth.pow(2).mean().sqrt())
        print(f"{convolve.__name__}, {what}: relative error {error:.3g}, worst element {element:.3g}; at most {CASE['bound']:g} and ten times it wanted")
        wrong += not (error <= CASE["bound"] and element <= 10 * CASE["bound"])
sys.exit(wrong > 0)
