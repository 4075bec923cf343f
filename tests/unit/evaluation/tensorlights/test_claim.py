"""What ``scripts/evaluate tensorlights`` measures and how it adds up, up to the box's process boundary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from evaluation import evaluate, summary
from evaluation.tensorlights import claim
from evaluation.tensorlights.claim import ARMS, FAIR, ONE, RR, SERVER_HOSTS, Group, add_up, groups, headline
from evaluation.tensorlights.workload import HOSTS, JOBS, experiment
from tests.support.fake_kernel import FakeKernel
from topologies.lab import nic_queues
from topologies.lab.agents import Agents
from topologies.lab.meters import LinkUse, Meter
from topologies.lab.results import (
    ArmResult,
    Control,
    JobResult,
    LabRequest,
    LabResult,
    PolicyChoice,
    load_request,
    save,
)
from topologies.trainer import barriers
from topologies.trainer.barriers import BarrierWait, waits


def job(jct: float | None, wait: float = 1.0, variance: float = 0.5, *, asked: bool = True) -> JobResult:
    barrier = BarrierWait(19, wait, variance) if asked else None
    return JobResult(1.0, 2.0, jct, jct is None, 99.0, history=((1.0, 1, 0.5),), barrier=barrier)


def arm(
    name: str, seed: int, *jobs: JobResult, idle: float = 0.5, busy: Mapping[str, float] | None = None
) -> ArmResult:
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    links = tuple(LinkUse(host, share, 0.25) for host, share in (busy or {}).items())
    made = {f"job{number:02d}": one for number, one in enumerate(jobs, start=1)}
    return ArmResult("x", seed, name, made, control, (1,) * 8, idle, 60.0, links)


def lab(*arms: ArmResult) -> LabResult:
    return LabResult("user", HOSTS, 1e7, 8, None, {}, arms)


@pytest.mark.parametrize("server_hosts", SERVER_HOSTS)
def test_each_job_has_a_server_and_a_worker_on_every_other_host(server_hosts: int) -> None:
    made = experiment(server_hosts, 7, 20)
    assert made == experiment(server_hosts, 7, 20)
    assert made != experiment(server_hosts, 8, 20)
    assert len(made.jobs) == JOBS
    servers = [planned.hosts[0] for planned in made.jobs]
    assert {servers.count(host) for host in servers} == {JOBS // server_hosts}
    assert len(set(servers)) == server_hosts
    for planned in made.jobs:
        assert set(planned.hosts) == {f"h{n}" for n in range(1, HOSTS + 1)}
        assert (planned.architecture, planned.iterations) == ("ps", 20)
    arrivals = [planned.arrival for planned in made.jobs]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] <= 2.0
    assert len({planned.model_bytes for planned in made.jobs}) == 1, "equal jobs: bands change among them"
    assert made.barriers
    assert made.nic_queue_bytes is not None
    at_once = JOBS * (HOSTS - 1) * made.jobs[0].model_bytes
    assert made.nic_queue_bytes > 2 * at_once, "what fair sharing queues must fit"


def test_the_claim_has_paired_seeds_and_no_arm_always_goes_first() -> None:
    made = groups()
    for server_hosts in SERVER_HOSTS:
        seeds = {group.seed for group in made if group.server_hosts == server_hosts}
        assert len(seeds) >= (5 if server_hosts == 1 else 3)
    for group in made:
        assert sorted(choice.name for choice in group.request().policies) == ["fair", "tls-one", "tls-rr"]
        assert {choice.policy for choice in group.request().policies} == {"fair"}, "nothing but the NICs differs"
    assert len({group.request().policies[0].name for group in made if group.server_hosts == 1}) == 3
    assert len({group.name for group in made}) == len(made)


def test_quick_is_one_seed_of_short_jobs_with_all_servers_on_one_host() -> None:
    (group,) = groups(quick=True)
    assert group.server_hosts == 1
    assert {choice.name for choice in group.request().policies} == {"fair", "tls-one", "tls-rr"}
    assert group.experiment().jobs[0].iterations < groups()[0].experiment().jobs[0].iterations


def test_results_add_up_by_placement_against_fair_sharing_on_the_same_jobs() -> None:
    results = [
        (
            Group(1, seed),
            lab(
                arm("tls-rr", seed, job(30.0, 0.5, 0.1), job(30.0, 0.5, 0.1), idle=0.4),
                arm("fair", seed, job(50.0 + seed, 1.0, 0.4), job(50.0 - seed, 3.0, 0.6)),
                arm("tls-one", seed, job(20.0, 1.0, 0.25), job(60.0, 1.0, 0.25)),
            ),
        )
        for seed in (61, 62)
    ] + [(Group(12, 61), lab(arm("fair", 61, job(40.0)), arm("tls-one", 61, job(40.0)), arm("tls-rr", 61, job(50.0))))]
    fields = add_up(results)
    assert (fields["arms"], fields["least_cpu_idle_share"]) == (9, 0.4)
    assert list(fields["placements"]) == ["1", "12"]
    together = fields["placements"]["1"]
    assert list(together) == ["fair", "tls-one", "tls-rr"]
    assert together["fair"]["jct"]["mean"] == pytest.approx(50.0)
    assert together["fair"]["jct"]["reduction"] == 0.0
    assert together["tls-rr"]["jct"]["reduction"] == pytest.approx(0.4)
    assert together["tls-rr"]["jct"]["reduction_ci95"] == [pytest.approx(0.4), pytest.approx(0.4)]
    assert together["tls-one"]["jct"]["by_seed"] == [40.0, 40.0]
    assert together["tls-one"]["makespan"]["by_seed"] == [60.0, 60.0]
    assert together["tls-rr"]["barrier_wait"]["reduction"] == pytest.approx(0.75)
    assert together["tls-rr"]["barrier_variance"]["reduction"] == pytest.approx(0.8)
    assert together["tls-rr"]["cpu_busy_share"] == pytest.approx(0.6)
    assert fields["placements"]["12"]["tls-rr"]["jct"]["reduction"] == pytest.approx(-0.25)
    claims = headline(fields)
    assert [claim["metric"] for claim in claims] == [
        *("mean_jct",) * 2, *("mean_barrier_wait",) * 2, *("barrier_wait_variance",) * 2, *("mean_jct",) * 2,
    ]  # fmt: skip
    assert "TLs-One" in claims[0]["claim"]
    assert claims[0]["claim"].endswith("12 parameter servers on one host")
    assert claims[1]["reduction"] == pytest.approx(0.4)
    assert claims[-1]["claim"].endswith("12 parameter servers on 12 hosts, one each")


def test_a_job_that_does_not_end_counts_as_long_as_it_was_watched() -> None:
    result = lab(arm("fair", 1, job(50.0)), arm("tls-one", 1, job(None)), arm("tls-rr", 1, job(50.0)))
    found = add_up([(Group(1, 1), result)])["placements"]["1"]["tls-one"]
    assert (found["censored"], found["jobs"]) == (1, 1)
    assert found["jct"]["mean"] == 99.0


def test_links_are_told_of_the_hosts_with_servers_and_of_all() -> None:
    group = Group(2, 61)
    servers = {planned.hosts[0] for planned in group.experiment().jobs}
    busy = {f"h{n}": 0.9 if f"h{n}" in servers else 0.1 for n in range(1, HOSTS + 1)}
    arms = [arm(choice.name, 61, job(40.0), busy=busy) for choice in ARMS]
    links = add_up([(group, lab(*arms))])["placements"]["2"]["fair"]["links"]
    assert links["servers_egress_share"] == pytest.approx(0.9)
    assert links["servers_ingress_share"] == pytest.approx(0.25)
    assert links["mean_egress_share"] == pytest.approx((2 * 0.9 + 11 * 0.1) / 13)
    assert links["busiest_egress_share"] == pytest.approx(0.9)


def test_what_was_not_measured_is_not_claimed() -> None:
    arms = [arm(choice.name, 1, job(40.0), job(50.0, asked=False)) for choice in (FAIR, ONE, RR)]
    fields = add_up([(Group(1, 1), lab(*arms))])
    assert fields["placements"]["1"]["fair"]["barrier_wait"] is None
    assert {claim["metric"] for claim in headline(fields)} == {"mean_jct"}
    assert all(table.row_count == 3 for table in claim.tables(fields))


def test_the_command_measures_quickly_and_writes_all(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "out"
    arguments = ["tensorlights", "--quick", "--datapath", "uml", "--results", str(folder)]
    assert evaluate.main(arguments) == 0
    assert kernel.runs() == ["servers-on-1-1"]
    made = json.loads((folder / "summary.json").read_text())
    assert (made["quick"], made["arms"], made["seeds"]) == (True, 3, [1])
    assert list(made["placements"]["1"]) == ["fair", "tls-one", "tls-rr"]
    assert all("quick" in claim["claim"] for claim in made["headline"])
    assert (folder / "tensorlights.png").read_bytes().startswith(b"\x89PNG")
    assert "not to be quoted" in capsys.readouterr().out
    kernel.forget()
    assert evaluate.main([*arguments, "--resume"]) == 0
    assert kernel.runs() == [], "its result answers the same request"


def test_a_request_goes_to_the_box_and_comes_back_whole(tmp_path: Path) -> None:
    request = Group(3, 62).request()
    save(tmp_path / "request.json", request)
    found = load_request(tmp_path / "request.json")
    assert found == request
    assert isinstance(found, LabRequest)
    assert {choice.nic for choice in found.policies} == {"none", "tls-one", "tls-rr"}


def test_workers_wait_for_the_last_that_comes() -> None:
    assert waits([]) is None
    assert waits([[], []]) is None
    found = waits([[0.0, 10.0, 20.0], [5.0, 12.0, 24.0, 30.0]])
    assert found is not None
    assert found.barriers == 2, "the first is left out, and what not all came to"
    assert found.mean_seconds == pytest.approx((2.0 + 0.0 + 4.0 + 0.0) / 4)
    assert found.variance == pytest.approx((1.0 + 4.0) / 2)
    assert waits([[1.0], [4.0]]) == BarrierWait(1, 1.5, 2.25)


def test_moments_come_back_from_disk_and_bad_ones_name_their_file(tmp_path: Path) -> None:
    barriers.write(tmp_path, "a", 1, [0.0, 10.0])
    assert barriers.read(tmp_path, "a", 2) is None, "one worker has left nothing"
    barriers.write(tmp_path, "a", 2, [1.0, 13.0])
    found = barriers.read(tmp_path, "a", 2)
    assert found == BarrierWait(1, 1.5, 2.25)
    barriers.barrier_file(tmp_path, "a", 2).write_text('{"x": 1}')
    with pytest.raises(ValueError, match=r"barriers/a/2.json: not a worker's arrival times"):
        barriers.read(tmp_path, "a", 2)


def test_a_meter_tells_shares_of_processors_and_links(tmp_path: Path) -> None:
    now = [100.0]

    def counted(cpu: str, received: int, sent: int) -> None:
        (tmp_path / "stat").write_text(f"cpu  {cpu}\ncpu0 1 1 1 1\n")
        (tmp_path / "7" / "net").mkdir(parents=True, exist_ok=True)
        header = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
        lines = f"    lo: 9 9 9 9 9 9 9 9 9 9\nh1-eth0: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"
        (tmp_path / "7" / "net" / "dev").write_text(header + lines)

    counted("100 0 0 100 0 0 0 0 0 0", 1000, 5000)
    meter = Meter({"h1": 7}, 1e6, proc=tmp_path, clock=lambda: now[0])
    now[0] += 10.0
    counted("160 0 0 140 0 0 0 0 0 0", 126_000, 630_000)
    used = meter.use()
    assert used.busy_share == pytest.approx(0.6)
    assert used.links == (LinkUse("h1", pytest.approx(0.5), pytest.approx(0.1)),)
    with pytest.raises(FileNotFoundError, match="no interface h2-eth0"):
        Meter({"h2": 7}, 1e6, proc=tmp_path)


class Hosts:
    """What ``nic_queues`` asks of an emulation: the commands are kept."""

    hosts = ("h1", "h2")

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def run(self, host: str, command: list[str], *, timeout: float = 60.0) -> str:
        self.said.append((host, command[-1]))
        return ""


def test_nic_queues_are_as_the_experiment_wants_for_as_long_as_an_arm_takes() -> None:
    hosts = Hosts()
    with pytest.raises(RuntimeError), nic_queues.as_wanted(hosts, experiment(1, 1, 8)):
        assert [host for host, _ in hosts.said] == ["h1", "h2"]
        assert hosts.said[1][1].splitlines() == [
            "tc qdisc change dev h2-eth0 parent 7472:10 handle 7510: bfifo limit 16777216",
            "tc qdisc change dev h2-eth0 parent 7472:1f handle 751f: bfifo limit 16777216",
        ]
        raise RuntimeError
    assert [line.split()[-1] for line in hosts.said[2][1].splitlines()] == [str(512 * 1024), str(128 * 1024)]
    plain = Hosts()
    with nic_queues.as_wanted(plain, experiment(1, 1, 8).model_copy(update={"nic_queue_bytes": None})):
        pass
    assert plain.said == []


class Launched:
    """An emulation whose fork server records what it was asked to start."""

    hosts = ("h1",)

    def __init__(self) -> None:
        self.arguments: list[list[str]] = []
        self.fork_server = self

    def pid(self, host: str) -> int:
        return 1

    def start(self, program: str, arguments: list[str], **_others: object) -> None:
        self.arguments.append(arguments)

    def host_token(self, host: str) -> str:
        return "t"


def test_agents_are_told_what_orders_their_nic(tmp_path: Path) -> None:
    launched = Launched()
    agents = Agents(launched, tmp_path)
    for choice in (PolicyChoice("jpas"), FAIR, RR):
        agents.start_reporters(launched, experiment(1, 1, 8), choice.nic)
    plan, nothing, rotated = launched.arguments
    assert plan[plan.index("--nic") + 1] == "plan"
    assert "--interface" not in nothing
    assert "--nic" not in nothing
    assert rotated[rotated.index("--nic") + 1 :] == ["tls-rr", "--interface", "h1-eth0", "--rate-bps", "10000000"]


def test_the_docs_may_quote_only_what_the_summary_has(tmp_path: Path) -> None:
    results = [
        (Group(1, seed), lab(*(arm(choice.name, seed, job(40.0 + seed)) for choice in ARMS))) for seed in (61, 62, 63)
    ]
    made = evaluate.document(claim, results, "scripts/evaluate tensorlights", 1, commits=["a"], quick=False)
    summary.write(tmp_path / "summary.json", made)
    document = json.loads((tmp_path / "summary.json").read_text())
    assert {"command", "commit", "machine", "seeds", "headline", "placements", "quick"} <= set(document)
    assert document["seeds"] == [61, 62, 63]
    for entry in document["headline"]:
        assert {"claim", "metric", "unit", "baseline", "value", "reduction", "ci95"} <= set(entry)
