"""Where each loss's gradient points beside that of soft F_β, and what Jensen's inequality leaves, along training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from fbeta_reproduction.engine.image_stack import ImageStack
from fbeta_reproduction.engine.resnet import ResNet
from fbeta_reproduction.images.binary_images import BinaryImages
from fbeta_reproduction.protocol import BETAS, Run, faithful
from fbeta_reproduction.readings.run_loss import loss_of
from fbeta_reproduction.results.gradients import DIGITS
from fbeta_reproduction.runner.execution import ON_A_CPU, stacks
from fbeta_reproduction.runner.run_stack import RunStack

#: Epochs after which is measured, and how many training rows at most.
MEASURED, ROWS = (1, 2, 5, 10, 20, 40, 80, 120), 4000

Counts = tuple[int, int]


def follow(
    runs: Sequence[Run], images: BinaryImages, device: torch.device, tick: Callable[[int], None] = lambda epochs: None
) -> list[dict[str, Any]]:
    """Train runs and measure every one after some epochs; each point is plain data.

    The gradient is that of all parameters on training rows, not augmented, with the running statistics of the
    normalisations: what a run's loss is reported on.
    """
    points = []
    for part in stacks(runs, len(runs) if device.type == "cuda" else ON_A_CPU):
        work = RunStack(part, images, device)
        for epoch in range(1, part[0].epochs + 1):
            work.stack.train_epoch()
            tick(len(part))
            if epoch in MEASURED:
                for i, run in enumerate(part):
                    found = _at(work, i)
                    points.append({"loss": run.label, "repeat": run.repeat, "epoch": epoch, **found})
    return points


def _at(work: RunStack, i: int) -> dict[str, Any]:
    run = work.runs[i]
    train = work.splits[run.repeat].train
    rows = train[:: math.ceil(len(train) / ROWS)]
    model = network(work.stack, i)
    y = torch.from_numpy(work.target(run)[rows]).to(work.stack.device, torch.float32)
    logits = model(pixels(work.stack, i, work.images.images[rows]))
    z = logits[:, 1] - logits[:, 0]
    counts = work.class_counts(run)
    return {"cosine": cosines(z, y, list(model.parameters()), run.dataset, counts), **jensen(z.detach(), y, counts)}


def network(stack: ImageStack, i: int) -> ResNet:
    """Run `i` of a stack as an ordinary module, to evaluate."""
    model = ResNet(stack.layout.architecture)
    weights = stack.layout.unpack(stack.params[i].cpu(), stack.small[i].cpu(), model)
    for norm in stack.layout.norms():
        mean, var = norm.statistics(stack.running[i : i + 1].cpu())[0]
        weights |= {f"{norm.name}.running_mean": mean, f"{norm.name}.running_var": var}
    model.load_state_dict(weights, strict=False)
    return model.to(stack.device).eval()


def pixels(stack: ImageStack, i: int, images: NDArray[np.uint8]) -> Tensor:
    """Images as run `i` of a stack is evaluated on them: centred, without its mean, in three channels.

    Shape: `images` ``(n, h, w, C)``; result ``(n, 3, size, size)``.
    """
    x = torch.from_numpy(images).to(stack.device, torch.float32) / 255
    border = (stack.layout.image - images.shape[1]) // 2
    x = F.pad(x.movedim(-1, 1), (border,) * 4) - stack.mean[i].float().movedim(-1, 0)
    return x.expand(-1, 3, -1, -1)


def cosines(
    z: Tensor, y: Tensor, parameters: list[Tensor], dataset: str, counts: Counts
) -> dict[str, list[float | None]]:
    r"""The cosine between the gradient of each loss and that of macro soft F_β, for each of the four β.

    .. math:: \frac{g \cdot h_\beta}{\lVert g \rVert \lVert h_\beta \rVert}, \qquad
              g = \nabla_\theta L,\ h_\beta = \nabla_\theta (1 - \tilde F_\beta)

    1 − F̃ and −log F̃ have the same direction. None where a gradient is zero.

    Shape: `z` and `y` ``(n,)``.
    """
    measured = [*faithful(dataset, repeats=1), Run(dataset, "bce")]
    rows = []
    for run in measured:
        leaf = z.detach().requires_grad_()
        (pull,) = torch.autograd.grad(loss_of(run, counts).to(z.device)(leaf, y), leaf)
        grads = torch.autograd.grad(z, parameters, pull, retain_graph=True)
        rows.append(torch.cat([g.flatten() for g in grads]))
    units = [g / n if (n := g.norm()) > 0 else g * math.nan for g in rows]
    soft = [units[[run.label for run in measured].index(f"soft-b{beta:g}")] for beta in BETAS]
    return {
        run.label: [_number((unit @ other).item()) for other in soft] for run, unit in zip(measured, units, strict=True)
    }


def jensen(z: Tensor, y: Tensor, counts: Counts) -> dict[str, Any]:
    r"""What lies between the mean of a logarithm and the logarithm of the mean, for both classes; none is negative.

    .. math:: J_+ = \log \operatorname{E}_+[f] - \operatorname{E}_+[\log f], \qquad
              J_- = \log(a + \operatorname{E}_-[f]) - \operatorname{E}_-[\log(a + f)]

    The class-balanced surrogate loss is its approximation plus J₊ − J₋; class-balanced cross entropy is its bound plus
    J₊ and log E₋[1 − f] − E₋[log(1 − f)].

    Shape: `z` and `y` ``(n,)``.

    >>> found = jensen(torch.zeros(4), torch.tensor([1.0, 0.0, 0.0, 1.0]), (9, 1))
    >>> found["missed"], found["alarmed"], found["alarmed_bce"]
    (0.0, [0.0, 0.0, 0.0, 0.0], 0.0)
    """
    one, zero = z.double()[y == 1], z.double()[y == 0]
    alarmed = []
    for beta in BETAS:
        a = beta**2 * counts[1] / counts[0]
        alarmed.append(_gap(torch.logaddexp(F.logsigmoid(zero), torch.tensor(a, device=z.device).double().log())))
    return {"missed": _gap(F.logsigmoid(one)), "alarmed": alarmed, "alarmed_bce": _gap(F.logsigmoid(-zero))}


def _gap(logs: Tensor) -> float:
    """Logarithm of the mean minus mean of the logarithms."""
    return abs(round((logs.logsumexp(0) - math.log(len(logs)) - logs.mean()).item(), DIGITS))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(min(1.0, max(-1.0, value)), DIGITS)  # rounding may lead beyond 1
