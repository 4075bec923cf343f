"""Which hosts have jobs, so that traffic between them has a place though no rule tells it apart. Pure.

A rule for each host notes the number of its group, which stands for its jobs (see ``groups``). A rule for each group
and each host with one of the group's jobs says that such a pair shares a job. That is one rule for each host of a job,
where jobs have their hosts to themselves, and not one for each pair. A rule for each host with a job says that it has
one, whichever group the other end is of. So it is also for hosts that share several jobs.

Where switches have no room for rules on hosts of different jobs, all crowded groups together have one number, and one
rule for each host with which one of them shares a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import ClassVar, NamedTuple

from controller.memo import Latest, Memo
from controller.model import Host, Job, server_of
from controller.rules.families import ends
from controller.rules.pairs.groups import NO_GROUP, Group, Grouped, HostsByJob, SameJobs, Shared, grouped, same_jobs
from controller.rules.sites import TrafficSites, in_port, traffic_sites

_REMEMBERED_JOBS = 32768
_Members = tuple[tuple[str, frozenset[str]], ...]
"""The hosts of each job, by their names, sorted by job."""
_members: Memo[tuple[Job, ...], _Members] = Memo(4)
_hosts: Latest[tuple[tuple[object, ...], frozenset[str]]] = Latest(_REMEMBERED_JOBS)
"""The hosts of each job, and the parts of the job from which they are known."""


class Source(NamedTuple):
    """An IP or MAC address of a host, where its packets enter the network (None: not known), its group, and a job."""

    end: str
    switch: int | None
    in_port: int | None
    group: Group
    job: str


class Partners(NamedTuple):
    """Addresses, of IP and MAC, to which the hosts of a group send, each with the job that alone uses the pair.

    That job is None where several use it, or none does. ``switches`` are those where hosts of the group are attached;
    None stands for any switch. ``job`` is one of the group. ``group`` is None where it is any host with a job, and its
    ``own`` is 0 where it is any group with the same main job.
    """

    group: Group | None
    switches: tuple[int | None, ...]
    to: tuple[tuple[str, str | None], ...]
    job: str


class Places(NamedTuple):
    """The hosts that have jobs, as few rules."""

    sources: tuple[Source, ...]
    partners: tuple[Partners, ...]

    def rules_at(self) -> tuple[Counter[int], int]:
        """Returns how many rules they need: at single switches, and in addition at every switch."""
        at: Counter[int | None] = Counter(source.switch for source in self.sources)
        to: Counter[tuple[int | None, ...]] = Counter()
        for partners in self.partners:
            to[partners.switches] += len(partners.to)
        for switches, count in to.items():
            at.update(dict.fromkeys(switches, count))
        everywhere = at.pop(None, 0)
        return Counter({switch: count for switch, count in at.items() if switch is not None}), everywhere


NOWHERE = Places((), ())


def places(hosts: Mapping[str, Host], jobs: tuple[Job, ...], *, between_jobs: bool) -> Places:
    """Returns the hosts that have one of ``jobs``: the same object as long as nothing differs.

    Without ``between_jobs`` these are only the hosts that share a job with another one.
    """
    if not jobs:
        return NOWHERE
    sites = traffic_sites(hosts)
    members = _members.get(jobs, lambda: tuple(sorted((job.id, hosts_of(job)) for job in jobs)))
    for known_sites, known_members, between, known in _Latest.places:
        if known_sites is sites and between is between_jobs and known_members == members:
            return known
    found = _places(hosts, members, between_jobs=between_jobs)
    _Latest.places = ((sites, members, between_jobs, found), *_Latest.places[:2])
    return found


class _Latest:
    """The results for the hosts and jobs that were used last."""

    places: ClassVar[tuple[tuple[TrafficSites, _Members, bool, Places], ...]] = ()


def hosts_of(job: Job) -> frozenset[str]:
    """Returns the names of all hosts between which a job may have traffic."""
    parts = (job.tasks, job.flows, job.found, job.demand, job.listeners, job.udp_listeners, job.found_on)
    known = _hosts.get(job.id)
    if known is not None and all(map(is_, known[0], parts)):
        return known[1]
    names = frozenset(
        chain(
            (end for flow in chain(job.flows, job.found) for end in (flow.src, flow.dst)),
            (end for demand in job.demand for end in (demand.src, demand.dst)),
            (task.host for task in job.tasks),
            job.listeners.among,
            job.udp_listeners.among,
            job.found_on,
        )
    )
    _hosts.keep(job.id, (parts, names))
    return names


def _places(hosts: Mapping[str, Host], members: _Members, *, between_jobs: bool) -> Places:
    interfaces: dict[str, list[str]] = {}
    for name, host in hosts.items():
        if ends(host):
            interfaces.setdefault(host.server, []).append(name)
    # A job may send by every interface of a server that it runs on.
    members = tuple(
        (
            job,
            frozenset(
                chain.from_iterable(interfaces.get(server, ()) for server in {server_of(name) for name in names})
            ),
        )
        for job, names in members
    )
    hosts_by_job = {job: sorted(names) for job, names in members}
    sets = same_jobs(hosts_by_job)
    # All hosts of one group share its jobs.
    of_groups = _with_jobs if between_jobs and len(sets) > 1 else _sharing_jobs
    return of_groups(hosts, hosts_by_job, sets)


def _with_jobs(hosts: Mapping[str, Host], hosts_by_job: HostsByJob, sets: list[SameJobs]) -> Places:
    """Returns the places of all hosts with jobs."""
    groups, shared = grouped(sets, hosts_by_job, between_jobs=True)
    sources = chain.from_iterable(_sources(hosts, each) for each in groups)
    partners = [_sharing(hosts, each) for each in shared]
    switches = _switches(hosts[name] for same in sets for name in same.hosts)
    by_job: dict[str, list[str]] = {}
    for same in sets:
        by_job.setdefault(same.job, []).extend(same.hosts)
    for job, names in sorted(by_job.items()):
        to = _to(hosts, [(name, None) for name in sorted(names)])
        partners.append(_shared_object(Partners(None, switches, to, job)))
    return Places(tuple(sources), tuple(partners))


def _sharing_jobs(hosts: Mapping[str, Host], hosts_by_job: HostsByJob, sets: list[SameJobs]) -> Places:
    """Returns the places of the hosts that share a job with another one."""
    groups, shared = grouped(sets, hosts_by_job, between_jobs=False)
    sources = chain.from_iterable(_sources(hosts, each) for each in groups if each.group is not None)
    partners = [_sharing(hosts, each) for each in shared]
    crowd = [each.same for each in groups if each.is_crowded]
    switches = _switches(hosts[name] for same in crowd for name in same.hosts)
    jobs = sorted({job for same in crowd for job in same.jobs}, reverse=True)
    crowded = {name: job for job in jobs for name in hosts_by_job[job]}
    for name, job in sorted(crowded.items()):
        partners.append(_shared_object(Partners(NO_GROUP, switches, _to(hosts, [(name, None)]), job)))
    return Places(tuple(sources), tuple(partners))


def _sources(hosts: Mapping[str, Host], found: Grouped) -> Iterator[Source]:
    group = NO_GROUP if found.group is None else found.group
    for host in map(hosts.__getitem__, found.same.hosts):
        for end in ends(host):
            yield Source(end, host.switch, in_port(host), group, found.same.job)


def _sharing(hosts: Mapping[str, Host], shared: Shared) -> Partners:
    switches = _switches(hosts[name] for name in shared.hosts)
    return _shared_object(Partners(shared.group, switches, _to(hosts, shared.to), shared.job))


def _to(hosts: Mapping[str, Host], partners: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    return tuple((end, job) for name, job in partners for end in ends(hosts[name]))


def _switches(hosts: Iterable[Host]) -> tuple[int | None, ...]:
    switches = {host.switch for host in hosts}
    return (None,) if None in switches else tuple(sorted(switch for switch in switches if switch is not None))


@lru_cache(maxsize=_REMEMBERED_JOBS)
def _shared_object(partners: Partners) -> Partners:
    """Returns the same object for equal partners, because their rules are remembered by the object's identity."""
    return partners
