"""Each framework's callback in a real training, through a real agent, up to what the controller knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from evaluation.bench.support.frameworks import trainings
from host_reporter.integrations.keras import Progress as KerasProgress
from host_reporter.integrations.lightning import Progress as LightningProgress
from host_reporter.integrations.torch import Watch
from host_reporter.integrations.transformers import Progress as TransformersProgress
from tests.support.frameworks.running_agent import Yard
from tests.support.paths import ROOT

DDP = """
import os, time
import torch, trainings
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from host_reporter.integrations.torch import Watch, hosts
from host_reporter.training.launch import own_host

distributed.init_process_group("gloo")
assert hosts() == (own_host(),)
pictures, labels, test_pictures, test_labels = trainings.digits()
model = DistributedDataParallel(trainings.network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
rank, size = distributed.get_rank(), distributed.get_world_size()
with Watch(optimizer) as watch:
    for step in range(20):
        some = slice(step * 50 + rank, (step + 1) * 50, size)
        loss = torch.nn.functional.cross_entropy(model(pictures[some]), labels[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watch.metric(trainings.accuracy(model, test_pictures, test_labels))
    # One write: the other rank's may come between two.
    os.write(1, f"{rank} {float(trainings.accuracy(model, test_pictures, test_labels))}\\n".encode())
distributed.barrier()
time.sleep(0.5)  # as evaluation.real.training does, and why
distributed.destroy_process_group()
"""


def test_a_plain_loop(yard: Yard) -> None:
    yard.job("plain", 5100)
    best = trainings.plain(140, watch=lambda optimizer: Watch(optimizer, "plain", directory=yard.progress))
    state = yard.wait_ended("plain")
    assert best > 0.8, "it has learned something"
    assert (state["iterations_done"], state["last_metric"]) == (140, pytest.approx(best))


def test_a_loop_goes_on_from_its_checkpoint(yard: Yard) -> None:
    yard.job("resumed", 5101)
    optimizer = torch.optim.SGD(trainings.network().parameters())
    with Watch(optimizer, "resumed", begin=1000, directory=yard.progress):
        optimizer.step()
    assert yard.wait_ended("resumed")["iterations_done"] == 1001


def test_ddp_by_torchrun(yard: Yard, tmp_path: Path) -> None:
    """Two ranks over loopback; the job's id is torchrun's, and one rank speaks."""
    yard.job("ddp-run", 5102)
    script = tmp_path / "train.py"
    script.write_text(DDP)
    here = ROOT / "evaluation" / "bench" / "support" / "frameworks"
    path = os.pathsep.join([str(here), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRAINYARD_PROGRESS_DIR": str(yard.progress), "PYTHONPATH": path}
    environment |= {"GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-id", "ddp-run"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    reached = {line.split()[1] for line in done.stdout.splitlines() if line[:2] in ("0 ", "1 ")}
    assert len(reached) == 1, "both ranks have the same model"
    best = pytest.approx(float(reached.pop()))
    records = [json.loads(line) for line in (yard.progress / "ddp-run.jsonl").read_text().splitlines()]
    assert sum("ended" in record for record in records) == 1, "one rank has spoken"
    assert (records[-2]["iteration"], records[-2]["metric"]) == (20, best), records
    state = yard.wait_ended("ddp-run")
    assert (state["iterations_done"], state["last_metric"]) == (20, best), (records, state)


def test_keras(yard: Yard) -> None:
    yard.job("keras", 5103)
    best = trainings.keras(3, KerasProgress("keras", metric="val_accuracy", directory=yard.progress))
    state = yard.wait_ended("keras")
    assert (state["iterations_done"], state["last_metric"]) == (3 * 14, pytest.approx(best))


def test_a_callbacks_target_is_registered_and_a_loss_that_is_no_number_is_a_divergence(yard: Yard) -> None:
    yard.job("aimed", 5112)
    trainings.keras(1, KerasProgress("aimed", metric="val_accuracy", target=0.92, directory=yard.progress))
    state = yard.wait_ended("aimed")
    assert (state["spec"]["target"], state["diverged"]) == (0.92, False)
    yard.job("torch-aimed", 5113)
    optimizer = torch.optim.SGD(trainings.network().parameters())
    with Watch(optimizer, "torch-aimed", target=0.5, directory=yard.progress) as watch:
        optimizer.step()
        watch.metric(torch.tensor(float("nan")))
    state = yard.wait_ended("torch-aimed")
    assert (state["spec"]["target"], state["diverged"], state["last_metric"]) == (0.5, True, None)


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_a_target_through_a_trainer(yard: Yard, tmp_path: Path, name: str) -> None:
    job = f"{name}-aimed"
    yard.job(job, 5114 + len(name))
    if name == "lightning":
        callback = LightningProgress(job, metric="val_accuracy", target=0.92, directory=yard.progress)
        trainings.lightning(1, tmp_path, callback)
    else:
        progress = TransformersProgress(job, metric="eval_accuracy", target=0.92, directory=yard.progress)
        trainings.transformers(5, tmp_path, progress)
    state = yard.wait_ended(job)
    assert (state["spec"]["target"], state["diverged"]) == (0.92, False)


def test_lightning(yard: Yard, tmp_path: Path) -> None:
    yard.job("lightning", 5104)
    best = trainings.lightning(
        3, tmp_path, LightningProgress("lightning", metric="val_accuracy", directory=yard.progress)
    )
    state = yard.wait_ended("lightning")
    assert (state["iterations_done"], state["last_metric"]) == (3 * 14, pytest.approx(best))
    records = [json.loads(line) for line in (yard.progress / "lightning.jsonl").read_text().splitlines()]
    assert sum("metric" in record for record in records) == 3, "not of the batches that it tries first"


def test_lightning_on_two_ranks(yard: Yard, tmp_path: Path) -> None:
    """Ranks that Lightning starts itself."""
    yard.job("lightning-two", 5105)
    script = tmp_path / "train.py"
    script.write_text(
        "import trainings, sys\nimport lightning.pytorch as library\n"
        "from pathlib import Path\n"
        "from host_reporter.integrations.lightning import Progress\n"
        "whole = library.Trainer\n"
        "library.Trainer = lambda **told: whole(**told, strategy='ddp_fork', devices=2)\n"
        "trainings.lightning(2, Path(sys.argv[1]), Progress('lightning-two', metric='val_accuracy'))\n"
    )
    here = ROOT / "evaluation" / "bench" / "support" / "frameworks"
    path = os.pathsep.join([str(here), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRAINYARD_PROGRESS_DIR": str(yard.progress), "PYTHONPATH": path}
    environment |= {"GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert yard.wait_ended("lightning-two")["iterations_done"] == 2 * 7
    records = [json.loads(line) for line in (yard.progress / "lightning-two.jsonl").read_text().splitlines()]
    assert sum("ended" in record for record in records) == 1, "one rank has spoken"


def test_transformers(yard: Yard, tmp_path: Path) -> None:
    yard.job("bert", 5106)
    best = trainings.transformers(
        20, tmp_path, TransformersProgress("bert", metric="eval_accuracy", directory=yard.progress)
    )
    state = yard.wait_ended("bert")
    assert (state["iterations_done"], state["last_metric"]) == (20, pytest.approx(best))
