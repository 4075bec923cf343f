"""A rank of all-reduce jobs for the tests: ``python sasp_ranks.py CASES RANK WORLD FOLDER``; what it has goes to files.

Every case is trained by plain DDP or by SaSP, on the same data, so that the parameters can be compared.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook

import sasp
from sasp.training import partial
from sasp.training.layers import find_layers
from sasp.training.options import AllReduceOptions
from sasp.training.transports.allreduce import AllReduce

ITERATIONS = 12
BATCH = 6
WAYS = {
    "momentum": {"prediction": "momentum"},
    "local": {"prediction": "local"},
    "corrected": {"prediction": "momentum", "delay_compensation": 2.0, "rates": "gap"},
    "partial": {"partial": True},
    "halves": {"halves": True},
}
"""What a case's name asks for."""

PLAIN = {"partial": False, "prediction": "none"}
"""Nothing is done about late gradients."""


class Tangled(nn.Module):
    """Tied weights, an unused layer, a frozen one, normalisation, and attention, which uses a module uncalled."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.unused = nn.Linear(3, 3)
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.tied = nn.Linear(8, 8, bias=False)
        self.tied.weight = self.first.weight
        self.last = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x)).unsqueeze(1)
        x = self.norm(x + self.attention(x, x, x)[0]).squeeze(1)
        return self.last(torch.tanh(self.tied(self.frozen(x))))


class Mixed(nn.Module):
    """Two types of parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.middle = nn.Linear(8, 8).double()
        self.last = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x)).double()
        return self.last(torch.tanh(self.middle(x)).float())


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))


def make(case: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(3)
    model = Tangled() if "tangled" in case else Mixed() if "mixed" in case else plain()
    if "adam" in case:
        return model, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    groups = [{"params": list(model.parameters())[:1], "lr": 0.03}, {"params": list(model.parameters())[1:]}]
    return model, torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.01)


def batches(rank: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(100 + rank)
    return [
        (torch.randn(BATCH, 8, generator=generator), torch.randint(0, 4, (BATCH,), generator=generator))
        for _ in range(ITERATIONS)
    ]


def train(case: str, rank: int, folder: Path) -> dict[str, object]:
    model, optimizer = make(case)
    bare = model
    staleness = int(case.rsplit("-", 1)[1]) if case.rsplit("-", 1)[1].isdigit() else None
    if staleness is None:
        model = DistributedDataParallel(model, find_unused_parameters="tangled" in case)
    else:
        if rank == 1:
            for parameter in model.parameters():
                nn.init.zeros_(parameter)  # rank 0's are to be taken
        ways = PLAIN | {name: value for way, options in WAYS.items() if way in case for name, value in options.items()}
        model, optimizer = sasp.wrap(model, optimizer, staleness=staleness, chunk_bytes=1024, **ways)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)
    leads, late = [], []
    for number, (x, y) in enumerate(batches(rank)):
        optimizer.zero_grad()
        halves = [(x[:3], y[:3]), (x[3:], y[3:])] if "accumulate" in case else [(x, y)]
        silent = model.no_sync if staleness is None else optimizer.no_sync
        for i, (inputs, wanted) in enumerate(halves):
            if i + 1 < len(halves):
                with silent():
                    nn.functional.cross_entropy(model(inputs), wanted).backward()
            else:
                nn.functional.cross_entropy(model(inputs), wanted).backward()
        if "slow" in case and rank == 1 and number % 3 == 0:
            time.sleep(0.05)
        optimizer.step()
        scheduler.step()
        if staleness is not None:
            computed, communicated = optimizer.iterations
            leads.append(computed - communicated)
            late.append(optimizer.leads)
        if "evaluate" in case and number % 5 == 4:
            with torch.no_grad():
                model(x)
            computed, communicated = optimizer.iterations
            assert computed == communicated, "evaluation must see all that was computed"
    if staleness is not None:
        optimizer.flush()
        computed, communicated = optimizer.iterations
        assert computed == communicated == ITERATIONS
        optimizer.close()
        bare(torch.zeros(2, 8))  # a plain model again
    parameters = [parameter.detach().clone() for parameter in bare.parameters()]
    return {"parameters": parameters, "leads": leads, "late": set(late)}


def refused(rank: int) -> dict[str, object]:
    """What the ranks may not disagree on, and what cannot be wrapped; the message of each."""
    said = {}
    for name, options in {
        "staleness": {"staleness": rank},
        "chunks": {"chunk_bytes": 2048 << rank},
        "small chunks": {"chunk_bytes": 10},
        "negative": {"staleness": -1},
        "impatient": {"patience": 0.0},
        "way": {"prediction": "adam"},
        "ways": {"prediction": "local", "rates": "gap"},
        "other ways": {"delay_compensation": float(rank)},
        "needless": {"partial": True, "staleness": 0},
        "halves": {"halves": True, "staleness": 0},
        "halves and more": {"halves": True, "staleness": 1, "prediction": "momentum"},
    }.items():
        model, optimizer = make("plain-0")
        try:
            sasp.wrap(model, optimizer, **options)
        except sasp.SaspError as error:
            said[name] = str(error)
    return said


def twice(rank: int) -> dict[str, object]:
    """Two backward passes without saying so."""
    model, optimizer = make("plain-0")
    model, optimizer = sasp.wrap(model, optimizer)
    x, y = batches(rank)[0]
    nn.functional.cross_entropy(model(x), y).backward()
    try:
        nn.functional.cross_entropy(model(x), y).backward()
    except sasp.SaspError as error:
        return {"said": str(error)}
    return {}


def hooks(rank: int) -> dict[str, object]:
    """How often what is registered with optimisers is called, though each layer takes a step of its own."""
    counts = dict.fromkeys(("inner", "wrapped", "all"), 0)

    def count(name: str) -> Callable[..., None]:
        def called(*_: object) -> None:
            counts[name] += 1

        return called

    model, inner = make("plain-0")
    inner.register_step_post_hook(count("inner"))
    everywhere = register_optimizer_step_post_hook(count("all"))
    model, optimizer = sasp.wrap(model, inner)
    optimizer.register_step_pre_hook(count("wrapped"))
    for x, y in batches(rank):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.close()
    everywhere.remove()
    return counts


def loads(rank: int) -> dict[str, object]:
    """Loads parameters during a training, after a forward pass that computes ahead. Returns what becomes of them."""
    model, inner = make("plain-0")
    wanted = copy.deepcopy(model.state_dict())
    model, optimizer = sasp.wrap(model, inner, partial=False, chunk_bytes=1024)
    for number, (x, y) in enumerate(batches(rank)[:6]):
        if rank == 1:
            time.sleep(0.05)  # so the other rank computes ahead
        if number == 4:
            model(x)
            model.load_state_dict(wanted)
            for group in optimizer.param_groups:
                group["lr"] = 0.0
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.close()
    return {"wanted": list(wanted.values()), "found": [parameter.detach() for parameter in model.parameters()]}


def ahead(rank: int) -> dict[str, object]:
    """Rank 0 has all its layers ready, rank 1 has one until the other has received that one; whether it has."""
    model, _optimizer = make("plain-0")
    layers = find_layers(model, model.parameters())
    transport = AllReduce(AllReduceOptions(chunk_bytes=1024))
    transport.begin(layers)
    flats = [torch.full((layer.elements + len(layer.parameters),), float(rank + 1)) for layer in layers]
    transport.send(1, flats[1], 0.1)
    told = torch.zeros(1)
    if rank == 1:
        dist.recv(told, 0)
    for layer in (2, 0):
        transport.send(layer, flats[layer], 0.1)
    reached, [piece] = transport.receive(1, 1, 1)
    if rank == 0:
        dist.send(told, 1)
    transport.close()
    return {"reached": reached, "sums": set(piece.values.tolist())}


def lost(case: str, rank: int) -> dict[str, object]:
    """Rank 1 goes amid the training: killed, or (``silent``) stopped; what the other is told, and how soon."""
    patience = 3.0 if case == "silent" else None
    model, optimizer = sasp.wrap(*make("plain-0"), staleness=1, chunk_bytes=1024, patience=patience)
    began = time.monotonic()
    for number, (x, y) in enumerate(batches(rank)):
        if rank == 1 and number == 5:
            os.kill(os.getpid(), signal.SIGKILL if case == "killed" else signal.SIGSTOP)
        began = time.monotonic()
        try:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        except sasp.SaspError as error:
            return {"said": str(error), "seconds": time.monotonic() - began, "number": number}
    return {}


def main() -> None:
    cases, rank, world, folder = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    # A rank trains for a few iterations only.
    partial.WARM_UP, partial.MEASURED, partial.TRIED, partial.AGAIN = 1, 2, 1, 6
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    special = {"refused": refused, "twice": twice, "hooks": hooks, "loads": loads, "ahead": ahead}
    if cases[0] in ("killed", "silent"):
        torch.save(lost(cases[0], rank), folder / f"{cases[0]}.{rank}.pt")
        return
    for case in cases:
        found = special[case](rank) if case in special else train(case, rank, folder)
        torch.save(found, folder / f"{case}.{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
