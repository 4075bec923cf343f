"""What each launcher says of a process, alone and inside another one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.launchers import registry
from host_reporter.launchers.combine import sighting_of
from host_reporter.launchers.facts import Pod, ProcessFacts
from host_reporter.launchers.known.hydra import writes_labels
from host_reporter.launchers.launcher import Sighting
from host_reporter.launchers.rules import Rule

JOB_IN_V2 = "/system.slice/slurmstepd.scope/job_123/step_0/user/task_0"
POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c3d4e_0000_4000_8000_0123456789ab.slice"
UID = "1b2c3d4e-0000-4000-8000-0123456789ab"
IN_POD = f"{POD}/cri-containerd-{'a' * 64}.scope"
SLURM = {"SLURM_JOB_ID": "123", "SLURM_JOB_NODELIST": "h[1-2]", "SLURM_JOB_NAME": "resnet", "SLURM_PROCID": "0"}
STEP = SLURM | {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1"}
TORCH = {
    "TORCHELASTIC_RUN_ID": "my run", "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "h1", "MASTER_PORT": "29500", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "0",
}  # fmt: skip


def see(environment: Mapping[str, str], *cgroups: str, only: str | None = None, **more: Any) -> Sighting | None:
    facts = ProcessFacts(100, 5, frozenset({1000}), cgroups, environment, host="h1")
    for name, value in more.items():
        object.__setattr__(facts, name, value)
    return sighting_of(facts, registry.choose([only] if only is not None else None))


def seen(environment: Mapping[str, str], *cgroups: str, **more: Any) -> Sighting:
    sighting = see(environment, *cgroups, **more)
    assert sighting is not None
    return sighting


@pytest.mark.parametrize(
    ("launcher", "environment", "name", "ranks"),
    [
        ("slurm", STEP, "slurm-123", (3, 1, 4)),
        ("slurm", SLURM, "slurm-123", (None, None, None)),
        ("torchrun", TORCH, "torchrun-my-run", (1, 1, 4)),
        ("torchrun", TORCH | {"TORCHELASTIC_RUN_ID": "none"}, "torchrun-h1-29500", (1, 1, 4)),
        ("deepspeed", {**TORCH, "CROSS_RANK": "0", "CROSS_SIZE": "2"}, "deepspeed-h1-29500", (1, 1, 4)),
        ("ray", {"RAY_JOB_ID": "01000000"}, "ray-01000000", (None, None, None)),
        (
            "openmpi",
            {
                "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "PMIX_NAMESPACE": "prterun-h1-77@1", "PMIX_RANK": "2",
            },
            "mpi-prterun-h1-77-1",
            (2, 0, 4),
        ),
        ("openmpi", {"PMIX_NAMESPACE": "3546284033", "PMIX_RANK": "2"}, "mpi-3546284033", (2, None, None)),
        ("pals", {"PALS_APID": "9f-1", "PALS_RANKID": "2", "PMI_SIZE": "4"}, "pals-9f-1", (2, None, 4)),
        (
            "horovod",
            {
                "HOROVOD_RANK": "2", "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_RANK": "0",
                "HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": "4000",
            },
            "horovod-10.0.0.1-4000",
            (2, 0, 4),
        ),
        (
            "tensorflow",
            {
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": ["h1:2222", "h2:2222"]}, "task": {"type": "worker", "index": 1}}
                )
            },
            "tensorflow-h1-2222",
            (1, None, 2),
        ),
        ("pbs", {"PBS_JOBID": "12[3].server", "PBS_JOBNAME": "resnet"}, "pbs-12-3-.server", (None, None, None)),
        ("lsf", {"LSB_JOBID": "12", "LSB_JOBINDEX": "3"}, "lsf-12-3", (None, None, None)),
        ("trainyard", {"TRAINYARD_JOB": "my job"}, "my-job", (None, None, None)),
    ],
)  # fmt: skip
def test_a_launcher_names_a_job_and_its_ranks(
    launcher: str, environment: dict[str, str], name: str, ranks: tuple[int | None, ...]
) -> None:
    sighting = seen(environment, only=launcher)
    assert (sighting.launcher, sighting.name, sighting.trust) == (launcher, name, "environment")
    assert (sighting.rank, sighting.local_rank, sighting.world_size) == ranks
    assert see({}, only=launcher) is None


@pytest.mark.parametrize(
    ("launcher", "environment"),
    [
        ("mpich", {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}),
        ("intelmpi", {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "I_MPI_ROOT": "/opt/intel"}),
        ("mvapich", {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_LOCAL_RANK": "1"}),
        ("mvapich", {"MVP_COMM_WORLD_RANK": "1", "MVP_COMM_WORLD_SIZE": "2", "MVP_COMM_WORLD_LOCAL_RANK": "1"}),
    ],
)
@pytest.mark.parametrize(
    "proxy",
    [
        ("/usr/bin/hydra_pmi_proxy", "--control-port", "head:4000", "--rmk", "user"),
        ("hydra_bstrap_proxy", "--upstream-host", "head", "--upstream-port", "4000"),
    ],
)
def test_hydras_ranks_have_the_name_of_their_mpiexec(
    launcher: str, environment: dict[str, str], proxy: tuple[str, ...]
) -> None:
    sighting = seen(environment, only=launcher, parent_command=proxy)
    assert (sighting.name, sighting.rank, sighting.local_rank) == (f"{launcher}-head-4000", 1, 1)
    assert see(environment, only=launcher, parent_command=("bash",)) is None, "nothing names the run"
    assert seen(environment | SLURM, JOB_IN_V2).name == "slurm-123", "the job is Slurm's"


@pytest.mark.parametrize(
    ("cgroup", "group"),
    [
        (JOB_IN_V2, "/system.slice/slurmstepd.scope/job_123"),
        ("/system.slice/h1_slurmstepd.scope/job_123/step_batch/user", "/system.slice/h1_slurmstepd.scope/job_123"),
        ("/slurmstepd.scope/job_123/step_0/user", "/slurmstepd.scope/job_123"),
        ("/slurm/uid_1000/job_123/step_0/task_0", "/slurm/uid_1000/job_123"),
        ("/slurm_h1/uid_1000/job_123/step_batch", "/slurm_h1/uid_1000/job_123"),
    ],
)
def test_slurms_cgroup_is_believed(cgroup: str, group: str) -> None:
    sighting = seen({}, cgroup)
    assert (sighting.name, sighting.trust, sighting.group) == ("slurm-123", "cgroup", group)
    assert seen(STEP | {"SLURM_JOB_ID": "999"}, cgroup).name == "slurm-123", "the environment may say anything"
    assert seen({"TRAINYARD_JOB": "other"}, cgroup).name == "slurm-123"


@pytest.mark.parametrize(
    "cgroup",
    [
        "/user.slice/user-1000.slice/user@1000.service/system.slice/slurmstepd.scope/job_123",
        "/user.slice/user-1000.slice/user@1000.service/slurm/uid_0/job_123",
        f"/user.slice/user-1000.slice/user@1000.service{IN_POD}",
        "/system.slice/slurmstepd.scope/job_123x",
        "/slurm/uid_1000/job_99999999999",
    ],
)
def test_a_group_that_a_user_has_made_is_not_believed(cgroup: str) -> None:
    assert see({}, cgroup) is None
    named = seen({"TRAINYARD_JOB": "x"} | SLURM, cgroup)
    assert (named.name, named.trust) == ("x", "environment")


def test_hierarchies_that_do_not_agree_are_not_believed() -> None:
    assert see({}, JOB_IN_V2, "/slurm/uid_1000/job_124/step_0") is None
    assert see({}, "/system.slice/slurmstepd.scope/job_123/step_extern/user/task_0") is None, "logins are there"
    for daemons in ("", "/step_0/slurm", "/step_batch/slurm/x"):
        assert see({}, f"/system.slice/slurmstepd.scope/job_123{daemons}") is None, "Slurm's own daemon is there"


def test_arrays_and_heterogeneous_jobs() -> None:
    array = seen(STEP | {"SLURM_ARRAY_JOB_ID": "120", "SLURM_ARRAY_TASK_ID": "3"}, JOB_IN_V2)
    assert (array.name, array.family, array.description) == ("slurm-123", "resnet", "120_3")
    het = {"SLURM_HET_SIZE": "2", "SLURM_JOB_ID_HET_GROUP_0": "122"}
    one, two = seen(STEP | het, JOB_IN_V2), seen(STEP | het, JOB_IN_V2.replace("123", "122"))
    assert one.name == two.name == "slurm-122"
    assert one.trust == "environment", "the cgroups of the components do not tell that they are one job"
    assert one.hosts == (), "a component knows its own hosts alone"


def test_the_outer_launcher_names_the_job_and_the_inner_one_the_rank() -> None:
    both = seen(STEP | TORCH | {"SLURM_PROCID": "0"}, JOB_IN_V2)
    assert (both.launcher, both.name, both.rank, both.world_size) == ("slurm", "slurm-123", 1, 4)
    assert (both.hosts, both.family, both.may_restart) == (("h1", "h2"), "resnet", True)
    assert both.helper == "my-run", "where progress() without a name writes"
    mpi = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "n", "PMIX_RANK": "2"}
    assert (seen(SLURM | mpi, JOB_IN_V2).name, seen(SLURM | mpi, JOB_IN_V2).rank) == ("slurm-123", 2)
    pbs = seen({"PBS_JOBID": "7", "TRAINYARD_JOB": "mine"} | mpi)
    assert (pbs.name, pbs.rank, pbs.trust) == ("mine", 2, "environment")


def test_hosts_count_where_this_host_is_among_them() -> None:
    assert seen(STEP, JOB_IN_V2).hosts == ("h1", "h2")
    assert seen(STEP | {"SLURM_JOB_NODELIST": "node[1-2]"}, JOB_IN_V2).hosts == (), "its names are others"
    assert seen({"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "h1.cluster 4 h2.cluster 4"}).hosts == ("h1", "h2")
    assert seen(TORCH | {"LOCAL_WORLD_SIZE": "4"}).hosts == ("h1",)
    assert seen(TORCH).hosts == ()


def test_a_process_with_the_rights_of_two_users_speaks_for_none() -> None:
    assert see({"TRAINYARD_JOB": "x"}, users=frozenset({0, 1000})) is None
    assert seen(STEP, JOB_IN_V2, users=frozenset({0, 1000})).name == "slurm-123", "the cgroup speaks for it"


def test_a_meeting_place_on_the_loopback_is_this_hosts() -> None:
    single = TORCH | {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1"}
    assert seen(single).name == "torchrun-h1-29500"


# Kubernetes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cgroup", "uid"),
    [
        (IN_POD, UID),
        (f"/kubepods.slice/kubepods-pod{'a' * 32}.slice/crio-{'b' * 64}.scope", "a" * 32),
        (f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{'a' * 32}.slice", "a" * 32),
        (f"/kubepods/burstable/pod{UID}/{'a' * 64}", UID),
        (f"/kubepods/pod{'a' * 32}/crio-{'b' * 64}/init.scope", "a" * 32),
        (f"/docker/{'c' * 64}/kubelet/kubepods/besteffort/pod{'a' * 32}/{'b' * 64}", "a" * 32),
        (f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{'a' * 32}.slice", "a" * 32),
    ],
)  # fmt: skip
def test_the_pod_of_a_cgroup(cgroup: str, uid: str) -> None:
    from host_reporter.launchers.cgroup_paths import pod_group  # noqa: PLC0415

    group = pod_group([cgroup])
    assert group is not None and group.uid == uid
    assert cgroup.startswith(group.path)
    assert group.container is None or len(group.container) == 64


MPI_JOB = {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "K_MPI_JOB_ROLE": "launcher"}
TF_CLUSTER = {"chief": ["tf-chief-0.ns.svc:2222"], "worker": ["tf-worker-0.ns.svc:2222"]}
TF_JOB = {"TF_CONFIG": json.dumps({"cluster": TF_CLUSTER, "task": {"type": "worker", "index": 0}})}


@pytest.mark.parametrize(
    ("pod", "environment", "job", "rank"),
    [
        ("pt-worker-1", {"MASTER_ADDR": "pt-master-0", "RANK": "2", "WORLD_SIZE": "3"}, "pt", 2),
        ("pt-master-0", {"MASTER_ADDR": "localhost", "RANK": "0", "WORLD_SIZE": "3"}, "pt", 0),
        ("my-worker-worker-0", {"MASTER_ADDR": "my-worker-master-0", "RANK": "1", "WORLD_SIZE": "2"}, "my-worker", 1),
        ("llm-node-0-1-x7k2p", {"PET_MASTER_ADDR": "llm-node-0-0.llm", "PET_NNODES": "2"}, "llm", None),
        ("tf-worker-0", TF_JOB, "tf", 1),
        ("mpi-launcher-9xkzq", MPI_JOB, "mpi", None),
        ("mpi-worker-0", {"K_MPI_JOB_ROLE": "worker"}, "mpi", None),
        ("set-workers-0-1-abcde", {"JOBSET_NAME": "set", "JOB_COMPLETION_INDEX": "1"}, "set", None),
        ("plain-3-abcde", {"JOB_COMPLETION_INDEX": "3"}, "plain", None),
        ("alone", {"TRAINYARD_JOB": "x"}, "alone", None),
        ("ray-w-worker-abcde", {"RAY_JOB_ID": "01", "FQ_RAY_IP": "ray-head-svc.ns.svc.cluster.local"}, "ray", None),
        ("ray-head-abcde", {"RAY_JOB_ID": "01"}, "ray", None),
        # Another job's name is not this pod's.
        ("mine-worker-0", {"MASTER_ADDR": "yours-master-0", "RANK": "1", "WORLD_SIZE": "2"}, "mine-worker-0", 1),
        ("mine-0", {"JOBSET_NAME": "yours"}, "mine-0", None),
    ],
)
def test_the_pods_of_an_operators_job_are_one_job(
    pod: str, environment: dict[str, str], job: str, rank: int | None
) -> None:
    sighting = seen(environment, IN_POD, pod=Pod("ns", pod), users=frozenset({0}))
    assert (sighting.name, sighting.trust, sighting.user) == (f"k8s-ns.{job}", "cgroup", "ns")
    assert (sighting.rank, sighting.group) == (rank, POD)


def test_a_pod_is_known_by_its_cgroup_or_not_at_all() -> None:
    """All pods' users may be root: an environment says nothing across pods."""
    assert see({"PATH": "/bin"}, IN_POD, pod=Pod("ns", "nginx")) is None, "a service is no training"
    assert see({"TRAINYARD_JOB": "x"} | TORCH, IN_POD) is None, "its name is not known"
    assert see({"TRAINYARD_JOB": "x"}, IN_POD, only="trainyard", pod=Pod("ns", "p")) is None


# The operator's rules, plug-ins, nonsense ----------------------------------------------------------------------------


def by_rule(rule: Rule, environment: dict[str, str], *cgroups: str, user: int = 1000) -> Sighting | None:
    return sighting_of(ProcessFacts(1, 1, frozenset({user}), cgroups, environment, host="h1"), [rule])


def test_rules_of_the_operators() -> None:
    by_cgroup = Rule("batch", cgroup="/batch.slice/job-*.scope")
    sighting = by_rule(by_cgroup, {}, "/batch.slice/job-77.scope/child")
    assert sighting is not None
    assert (sighting.launcher, sighting.name, sighting.trust) == ("batch", "batch-77", "cgroup")
    assert sighting.group == "/batch.slice/job-77.scope"
    for cgroup in ("/batch.slice/job-7/7.scope", "/x/batch.slice/job-77.scope", "/batch.slice/job-77.scopes"):
        assert by_rule(by_cgroup, {}, cgroup) is None
    by_variable = Rule("sge", variable="JOB_ID", user=1000)
    sighting = by_rule(by_variable, {"JOB_ID": "9"})
    assert sighting is not None and (sighting.name, sighting.trust) == ("sge-9", "environment")
    assert by_rule(by_variable, {"JOB_ID": "9"}, user=1001) is None
    assert by_rule(by_variable, {}) is None
    both = by_rule(Rule("q", cgroup="/q/*", variable="V"), {"V": "1"}, "/q/a")
    assert both is not None and (both.name, both.trust) == ("q-a-1", "environment"), "the user has chosen a part of it"


def test_what_is_no_launcher_is_refused_with_what_there_is() -> None:
    with pytest.raises(registry.LauncherError, match=r"unknown launcher 'slrum'; there are: .*openmpi.*slurm"):
        registry.choose(["slrum"])
    assert {launcher.name for launcher in registry.choose(None)} == set(registry.available())
    assert not registry.broken()


NAMES = sorted(frozenset[str]().union(*(launcher.reads for launcher in registry.available().values())))


@given(
    st.dictionaries(
        st.sampled_from(NAMES), st.text(max_size=12) | st.sampled_from(["0", "1", "{}", "[1]"]), max_size=8
    ),
    st.lists(st.text(alphabet="/abjo_123.slicepdkuberm-", max_size=40), max_size=3),
)
def test_nonsense_raises_nothing(environment: dict[str, str], cgroups: list[str]) -> None:
    for pod in (None, Pod("a", "b-worker-0")):
        sighting = see(environment, *cgroups, pod=pod)
        assert sighting is None or (sighting.name and sighting.trust in ("cgroup", "environment"))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpiexec -l -n 2 python train.py", True),
        ("mpiexec.hydra -n 2 -prepend-rank python train.py", True),
        ("mpiexec -n 2 python train.py -l 3", False),
        ("mpiexec -n 2 python train.py", False),
        ("mpiexec -l -n 2 ./run.sh", True),
        ("mpiexec -n 2 ./run.sh -l", False),
        ("mpiexec", False),
    ],
)
def test_whether_mpiexec_labels_the_lines_of_ranks(command: str, expected: bool) -> None:
    assert writes_labels(command.split(), "/usr/bin/python") is expected
