"""Several ranks in tests: real processes of gloo, forked from one that has loaded torch already."""

import multiprocessing
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run_ranks(work, world, *arguments):
    """Call `work(rank, world, *arguments)` on every rank, and wait for all."""
    multiprocessing.set_forkserver_preload(["torch.nn.parallel", "torch._dynamo", "fbeta.losses"])
    mp.start_processes(work, (world, *arguments), nprocs=world, start_method="forkserver")


def join(rank, world, folder):
    """Meet the other ranks in a folder."""
    torch.set_num_threads(1)
    meet = f"file://{folder}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=world, timeout=timedelta(minutes=10))


def end_rank(together=True):
    """End a process of several ranks whose results are saved; threads that torch forgot would abort an ordinary end."""
    if together:
        dist.barrier()
    dist.destroy_process_group()
    os._exit(0)
