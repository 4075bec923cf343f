"""The lab: experiments under several policies in turn, on one emulated network, from start to tear-down.

    result = run_arms(experiment, ["fair", "jpas"], datapath="auto", results_dir=Path("results/demo"))

Where the kernel has no Open vSwitch datapath, the lab runs itself again inside a User-Mode Linux box. Events and result
are the same.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mininet.topo import Topo

from topologies import checkout, frameworks
from topologies.box import box
from topologies.box.datapath import Datapath, DatapathError, Wanted, choose, inside_box
from topologies.emulation import Emulation, emulate
from topologies.errors import LabError, LabInputError, one_line_errors
from topologies.experiments.experiment import Experiment
from topologies.lab import queue_proof
from topologies.lab.arm import run_arm
from topologies.lab.controller_process import ControllerProcess, chosen_token
from topologies.lab.queue_proof import QueueProof
from topologies.lab.results import (
    TENSORLIGHTS_ORDERS,
    ArmResult,
    LabEvent,
    LabRequest,
    LabResult,
    PolicyChoice,
    key,
    load_request,
    load_result,
    save,
)
from topologies.lab.solo_times import measure_solo_times
from topologies.lab.use.watch import Tick
from topologies.networks import DEFAULT_DSCP, LeafSpine, Testbed
from topologies.nodes import DEFAULT_SEGMENTS
from topologies.openvswitch import OpenVSwitchError
from topologies.teardown import TeardownError

Progress = Callable[[LabEvent], None]
RESULT = "lab.json"
_LEAST_MEMORY_MB, _MEMORY_MB, _MEMORY_MB_PER_HOST = 3072, 1408, 128
"""A box has 3 GB, or what it needs by itself and for the agent and the trainer of each host, where that is more."""
_NETWORK = (
    *("topology", "leaves", "spines", "uplink_bps", "rails", "addresses", "hosts", "link_bps", "queues", "dscp"),
    *("segments", "port_packets", "rto_min_seconds"),
)
"""The fields of an experiment that say what network it needs."""
_REQUEST = "request.json"
_EVENT = b'{"event": '

EXPECTED_ERRORS = (LabError, DatapathError, TeardownError, OpenVSwitchError, box.BoxError)
"""A caller shows these errors as one line each."""

__all__ = [
    "EXPECTED_ERRORS",
    "LabError",
    "LabEvent",
    "LabInputError",
    "LabRequest",
    "LabResult",
    "PolicyChoice",
    "run_arms",
    "run_lab",
]


def run_arms(
    experiment: Experiment,
    policies: Sequence[str | PolicyChoice],
    datapath: Wanted = "auto",
    progress: Progress = lambda _event: None,
    results_dir: Path = Path("results/lab"),
    *,
    prove_queues: bool = False,
    alone_iterations: int = 0,
) -> LabResult:
    """Run one experiment under each policy in turn; see ``run_lab``."""
    choices = tuple(PolicyChoice(p) if isinstance(p, str) else p for p in policies)
    request = LabRequest((experiment,), choices, prove_queues, alone_iterations)
    return run_lab(request, datapath, progress, results_dir)


def run_lab(
    request: LabRequest,
    datapath: Wanted = "auto",
    progress: Progress = lambda _event: None,
    results_dir: Path = Path("results/lab"),
    *,
    stop: threading.Event | None = None,
) -> LabResult:
    """Run all arms of ``request`` on one network. Logs, by arm, and ``lab.json`` go to ``results_dir``.

    ``stop`` ends a lab in a box that runs in another thread than the main one, which no signal reaches. Raises one of
    EXPECTED_ERRORS; then all is taken down, and the arms that were done are on disk. LabInputError means that nothing
    was started.
    """
    _check(request)
    chosen = choose(datapath)
    if chosen == "user" and any(choice.served != "controller" for choice in request.policies):
        raise LabInputError("switches on the userspace datapath serve by DSCP in every arm; try --datapath uml")
    for choice in request.policies:
        if choice.plugins:
            _check_plugins(choice, chosen)
    with one_line_errors():
        results_dir = results_dir.resolve()
        results_dir.mkdir(parents=True, exist_ok=True)
        if chosen == "uml":
            return _run_in_box(request, progress, results_dir, stop)
        result = _run_here(request, chosen, progress, results_dir)
        save(results_dir / RESULT, result)
        return result


def _check(request: LabRequest) -> None:
    if not request.experiments or not (request.policies or request.queue_proof or request.alone_iterations):
        raise LabInputError("nothing to run: there is no experiment, or no policy")
    chosen_token()
    shapes = {tuple(getattr(experiment, field) for field in _NETWORK) for experiment in request.experiments}
    if len(shapes) > 1:
        raise LabInputError(
            f"experiments that share a network must agree on {', '.join(_NETWORK[:-1])} and {_NETWORK[-1]}"
        )
    if request.alone_iterations and request.experiments[0].topology != "testbed":
        raise LabInputError("jobs are measured alone on the testbed only: in a fabric those on other hosts share links")
    if any(experiment.studies for experiment in request.experiments):
        if request.alone_iterations:
            raise LabInputError("jobs of studies cannot be measured alone: which of them train is not known beforehand")
        frameworks.interpreter("Optuna")
    ids = {job.id for experiment in request.experiments for job in experiment.jobs}
    ids |= {job.id for experiment in request.experiments for job in experiment.earlier}
    for choice in request.policies:
        if unknown := sorted(set(choice.declares) - ids):
            raise LabInputError(f"policy {choice.name} declares for jobs that there are not: {', '.join(unknown)}")
        if choice.nic in TENSORLIGHTS_ORDERS and request.experiments[0].rails > 1:
            raise LabInputError(
                f"policy {choice.name}: nic {choice.nic} orders one interface of a host; set rails to 1"
            )
    names = [choice.name for choice in request.policies]
    if len(set(names)) < len(names):
        raise LabInputError(f"two policies are called the same: {', '.join(names)}; give one a label")
    keys = [key(experiment) for experiment in request.experiments]
    if len(set(keys)) < len(keys):
        raise LabInputError(f"two experiments have the same name and seed: {', '.join(keys)}")


def _check_plugins(choice: PolicyChoice, chosen: Datapath) -> None:
    """Raises LabInputError where the arm's controller would not see the folder of its further policies."""
    folder = (checkout.ROOT / choice.plugins).resolve()
    if not folder.is_dir():
        raise LabInputError(f"policy {choice.name}: plugins: there is no folder {folder}")
    if chosen == "uml" and any(folder.is_relative_to(own) for own in box.OWN_FOLDERS):
        raise LabInputError(
            f"policy {choice.name}: plugins: {folder} is not visible in the box, which has its own /{folder.parts[1]}"
        )


def network_of(experiment: Experiment, datapath: Literal["kernel", "user"]) -> Topo:
    """Return the network of an experiment."""
    common: dict[str, Any] = {
        "link_bps": experiment.link_bps,
        "queues": experiment.queues,
        "datapath": datapath,
        "dscp": experiment.dscp or DEFAULT_DSCP,
        "addresses": experiment.addresses,
        "segments": experiment.segments or DEFAULT_SEGMENTS,
        "port_packets": experiment.port_packets or 0,
        "rto_min_seconds": experiment.rto_min_seconds or 0.0,
    }
    if experiment.topology == "testbed":
        return Testbed(servers=experiment.hosts, rails=experiment.rails, **common)
    assert experiment.leaves is not None  # its validator sees to that
    return LeafSpine(
        leaves=experiment.leaves,
        spines=experiment.spines,
        servers_per_leaf=experiment.hosts // experiment.leaves,
        uplink_bps=experiment.uplink_bps,
        **common,
    )


def _run_here(request: LabRequest, datapath: Datapath, progress: Progress, results: Path) -> LabResult:
    first = request.experiments[0]
    kind: Literal["kernel", "user"] = "user" if datapath == "user" else "kernel"
    topo = network_of(first, kind)
    progress(LabEvent("network", "starting the network"))
    proof: QueueProof | None = None
    alone = {}
    arms: list[ArmResult] = []
    with emulate(topo, datapath=kind) as emulation:
        if kind == "user":
            emulation.use_own_queues(first.queues - 1)
        emulation.connect_controller()
        if request.queue_proof:
            progress(LabEvent("proof", "proving the queues"))
            proof = _prove(emulation, first)
        for experiment in request.experiments:
            folder = results / key(experiment)
            if request.alone_iterations:
                alone[key(experiment)] = measure_solo_times(
                    emulation,
                    experiment,
                    request.alone_iterations,
                    results=folder / "alone",
                    tick=_ticker(progress, "alone", experiment, ""),
                )
            for choice in request.policies:
                arm = run_arm(
                    emulation,
                    experiment,
                    choice,
                    results=folder / choice.name,
                    tick=_ticker(progress, "arm", experiment, choice.name),
                )
                save(folder / choice.name / "arm.json", arm)
                arms.append(arm)
    return LabResult(
        datapath="uml" if inside_box() and datapath == "kernel" else datapath,
        hosts=first.hosts,
        link_bps=first.link_bps,
        queues=first.queues,
        queue_proof=proof,
        alone_seconds=alone,
        arms=tuple(arms),
        topology=first.topology,
        rails=first.rails,
        addresses=first.addresses,
    )


def _prove(emulation: Emulation, experiment: Experiment) -> QueueProof:
    controller = ControllerProcess(
        emulation,
        emulation.folder / "proof",
        "fifo",
        classes=experiment.queues - 1,
        period_seconds=experiment.period_seconds,
    )
    controller.start()
    try:
        controller.wait_ready()
        return queue_proof.prove(emulation, controller)
    finally:
        controller.stop()


def _ticker(progress: Progress, phase: str, experiment: Experiment, policy: str) -> Tick:
    total = experiment.trained
    text = f"{policy}: jobs trained" if policy else "jobs measured alone"

    def tick(done: int, seconds: float) -> None:
        progress(LabEvent("arm" if phase == "arm" else "alone", text, key(experiment), policy, done, total, seconds))

    return tick


def _run_in_box(
    request: LabRequest, progress: Progress, results: Path, stop: threading.Event | None = None
) -> LabResult:
    save(results / _REQUEST, request)
    (results / RESULT).unlink(missing_ok=True)
    reader = _Reader(progress)
    command = [sys.executable, "-m", "topologies.lab.lab", str(results)]
    status = box.run(command, memory=memory_for(request.experiments[0].hosts), output=reader, stop=stop)
    (results / _REQUEST).unlink(missing_ok=True)
    if reader.failure is not None:
        raise LabError(reader.failure)
    if status != 0:
        raise LabError(f"the lab in the box ended with status {status}")
    return load_result(results / RESULT)


def memory_for(hosts: int) -> str:
    """Returns the memory of a box whose network has so many hosts."""
    return f"{max(_LEAST_MEMORY_MB, _MEMORY_MB + _MEMORY_MB_PER_HOST * hosts)}M"


class _Reader:
    """Reads the output of the lab in the box: JSON events and a failure on stdout. The rest goes to stderr."""

    def __init__(self, progress: Progress) -> None:
        self.failure: str | None = None
        self._progress = progress
        self._rest = b""

    def __call__(self, stream: int, data: bytes) -> None:
        if stream != 1:
            box.write_through(2, data)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not line.startswith(_EVENT):
                box.write_through(2, line + b"\n")
                continue
            document = json.loads(line)
            if "failure" in document["event"]:
                self.failure = document["event"]["failure"]
            else:
                self._progress(LabEvent(**document["event"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Inside the box: run the request in the results folder, and report its events in JSON lines on stdout."""
    results = Path((sys.argv[1:] if arguments is None else arguments)[0])
    lock = threading.Lock()

    def report(event: dict[str, object]) -> None:
        with lock:
            sys.stdout.write(json.dumps({"event": event}) + "\n")
            sys.stdout.flush()

    try:
        run_lab(load_request(results / _REQUEST), "kernel", lambda event: report(asdict(event)), results)
    except EXPECTED_ERRORS as error:
        report({"failure": str(error)})
        return 1
    except KeyboardInterrupt:
        # The box's caller is gone or stops.
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
