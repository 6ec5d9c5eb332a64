"""Sums over the ranks of a distributed run: one small collective per training step, none in evaluation."""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

#: How long a rank waits for the others before it says which mistake this usually is.
PATIENCE = timedelta(minutes=5)


def group_of(process_group: dist.ProcessGroup | None, sync: bool) -> dist.ProcessGroup | None:
    """The group to sum over: the one given, else the default group if there is one and `sync` asks for it."""
    if not sync or not dist.is_available() or not dist.is_initialized():
        return None
    return dist.group.WORLD if process_group is None else process_group


def total(values: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Sum `values` over the ranks of `group`, without gradient."""
    if group is None:
        return values.detach()
    summed = values.detach().clone()
    if summed.is_cuda or torch.compiler.is_compiling():
        dist.all_reduce(summed, group=group)  # ordered on the stream, or in the graph: the host does not wait
        return summed
    work = dist.all_reduce(summed, group=group, async_op=True)
    try:
        work.wait(PATIENCE)
    except RuntimeError as error:
        raise RuntimeError(
            f"Rank {dist.get_rank()} waited for the counts of the other ranks in vain: a rank has fewer "
            "training steps, left training mode or disabled gradients. Give every rank as many steps "
            "(DistributedSampler with drop_last=True), or pass sync=False to keep each rank's own counts."
        ) from error
    return summed


def size(group: dist.ProcessGroup | None) -> int:
    """The number of ranks in `group`; one without a group."""
    return 1 if group is None else dist.get_world_size(group)
