"""All hosts that have asked to be added. It journals them, and it decides nothing by itself.

A host may take nothing that a host of the settings or an approved one has. Two hosts that wait may ask for the same
thing: else who asks first could keep the right one away. The operator sees both, and only one can be approved.
"""

from __future__ import annotations

import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from pydantic import ValidationError

from controller.access.network import network_of
from controller.enrolment.announced import Announced
from controller.enrolment.claims import Claim, clashes
from controller.enrolment.index import Index
from controller.enrolment.listed import Listed
from controller.enrolment.record import Enrolment, Link, Seat, Site, completed
from controller.journal.bodies import EnrolmentBody
from controller.journal.store import Batch, Contents, Store, StoreError, put
from controller.model import Host
from controller.pieces import Steps
from controller.refusals import Conflict, NotFound
from controller.wire.hosts import HostDecision, HostRequest

KIND = "enrolment"
"""The kind of the records in the journal."""
SILENT_SECONDS = 86400.0
"""Forget a host that waits and has not asked for this long."""
LOOKED_FOR_SECONDS = 600.0
"""Look for the port of a host as long as it has asked within this time."""
CHANGED = "it asks for something else by now than first; remove it, and it asks anew"


class Bounds(NamedTuple):
    """How many hosts may wait or be refused: in all, and of those that have asked from one address."""

    most_waiting: int
    most_waiting_per_address: int


class Move(NamedTuple):
    """A host of which an interface was found at a port. ``before`` is where this was; None: nobody knew."""

    host: Enrolment
    interface: str | None
    before: Site | None
    site: Site


class Enrolments:
    """The hosts that have asked, by name. ``clock`` gives seconds since the epoch, ``steady`` is set by nobody."""

    def __init__(self, store: Store, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._steady = steady
        self._known: dict[str, Enrolment] = _load(store.contents())
        self._heard = dict.fromkeys(self._known, steady())
        self._index = Index()
        self._announced = Announced()
        self._unlike: set[str] = set()
        """The hosts that wait and ask for something else by now than first."""
        for enrolment in self._known.values():
            self._index.add(enrolment)
        store.add_source(self._dump)

    def __iter__(self) -> Iterator[Enrolment]:
        return iter(sorted(self._known.values(), key=lambda each: each.name))

    @property
    def waiting(self) -> int:
        """How many hosts wait for a decision."""
        return sum(known.state == "pending" for known in self._known.values())

    def get(self, name: str) -> Enrolment | None:
        """Returns a host that has asked, or None."""
        return self._known.get(name)

    def host_of_token(self, token_sha256: str) -> str | None:
        """Returns the approved host whose token has this SHA-256, in hexadecimal."""
        return self._index.host_of_token(token_sha256)

    def is_approved(self, name: str) -> bool:
        """Returns whether a host of this name was approved."""
        known = self._known.get(name)
        return known is not None and known.state == "approved"

    def hosts(self, listed: Listed) -> dict[str, Host]:
        """Returns the interfaces of the approved hosts that take part beside those of the settings, by name.

        A host that has lost its place to the settings is left out.
        """
        taking_part = (each for each in self if each.state == "approved" and not self.obstacle(each, listed))
        return {host.name: host for each in taking_part for host in each.hosts()}

    def obstacle(self, enrolment: Enrolment, listed: Listed) -> str | None:
        """Returns why a host cannot take part although nobody has refused it; None: it can."""
        if enrolment.name in listed.names:
            return "the settings have a host of this name, which counts"
        found = clashes(enrolment, listed.holders, self._index.held)
        if found:
            return "; ".join(map(str, found))
        lost = [str(link.interface) for link in enrolment.links if link.site is None]
        if listed.needs_site and lost:
            of_some = f" of {', '.join(lost)}" if len(enrolment.links) > 1 else ""
            whose = "the" if of_some else "its"
            return f"{whose} switch and port{of_some} are not known, and forwarding: paths needs them"
        return None

    def problems(self, enrolment: Enrolment, listed: Listed) -> tuple[str, ...]:
        """Returns what an operator should know of a host that is not refused."""
        if enrolment.state == "refused":
            return ()
        said = [self.obstacle(enrolment, listed), *self._announced.problems(enrolment.name)]
        if enrolment.state == "pending":
            said += [f"{rival}, which waits too" for rival in self._index.rivals(enrolment)]
            said += [CHANGED] if enrolment.name in self._unlike else []
        return tuple(text for text in said if text is not None)

    def has_rivals(self, enrolment: Enrolment) -> bool:
        """Returns whether another host that waits asks for the same."""
        return bool(self._index.rivals(enrolment))

    # What hosts and operators do.

    def ask(self, name: str, request: HostRequest, asked_from: str, listed: Listed, bounds: Bounds) -> Enrolment:
        """A host asks, for the first time or again. Returns what is known of it then.

        Raises Conflict where the name, the token or what it claims is another's, or where there is no room.
        """
        if name in listed.names:
            raise Conflict(f"{name} is a host of the settings; give its agent the token of that host")
        known = self._known.get(name)
        if known is not None and known.request.token_sha256 != request.token_sha256:
            raise Conflict(
                f"{name} has asked already, with another token; have an operator remove it (trainyard hosts remove "
                f"{name}) if it is this machine, or give the agent another --host"
            )
        if known is None:
            self._check_room(asked_from, request, bounds)
            known = self._enter(Enrolment(name, request, secrets.token_hex(16), self._clock(), asked_from), listed)
        elif known.state == "pending":
            known = self._add_to(known, request, listed)
        self._heard[name] = self._steady()
        return known

    def decide(self, name: str, decision: HostDecision, by: str, listed: Listed) -> Enrolment:
        """An operator, or the settings, approve or refuse a host. Returns it as it is then.

        The same decision again may change its address, rates and port. Raises NotFound, and Conflict where another has
        what the host would take, or where its port must be known and is not.
        """
        known = self.find(name)
        if (of := _other_link_of(known, decision.address)) is not None:
            raise Conflict(f"{decision.address} is an address of {of}, and not of the first interface of {name}")
        if decision.state == "refused" and known.state == "approved":
            raise Conflict(f"{name} is approved; remove it instead (trainyard hosts remove {name})")
        told = Site(decision.switch, decision.port) if decision.switch and decision.port else None
        decided = replace(
            known,
            state=decision.state,
            decision=decision,
            decided_at=self._clock(),
            decided_by=by,
            site=told or known.site,
            found_by="operator" if told is not None else known.found_by,
        )
        if decision.state == "approved" and (obstacle := self.obstacle(decided, listed)) is not None:
            raise Conflict(f"{name} cannot be approved: {obstacle}")
        if told is not None:
            self._announced.forget(name)
        return self._save(decided)

    def remove(self, name: str) -> Enrolment:
        """Forget a host; its token counts no more. Raises NotFound."""
        known = self.find(name)
        self._index.drop(known)
        del self._known[name]
        self._heard.pop(name, None)
        self._announced.forget(name)
        self._unlike.discard(name)
        self._store.remove(KIND, name)
        return known

    def find(self, name: str) -> Enrolment:
        """Returns a host that has asked. Raises NotFound."""
        known = self._known.get(name)
        if known is None:
            raise NotFound(f"no host {name} has asked to be enrolled")
        return known

    # Where hosts are.

    @property
    def misplaced(self) -> list[str]:
        """The approved hosts that announce themselves where they are not known to be."""
        names = dict.fromkeys(seat.host for seat in self._announced.misplaced)
        return [name for name in names if self.is_approved(name)]

    @property
    def longest_wait(self) -> float:
        """How long the host has waited that waits longest for a decision, in seconds; 0: none waits."""
        now = self._clock()
        waits = (now - known.asked_at for known in self._known.values() if known.state == "pending")
        return max(0.0, max(waits, default=0.0))

    @property
    def are_looked_for(self) -> bool:
        """Whether the port of any host is looked for."""
        return any(map(self.is_looked_for, self._known.values()))

    def is_looked_for(self, enrolment: Enrolment) -> bool:
        """Returns whether the port of a host is looked for: it has asked lately, and nobody has found it."""
        if enrolment.state == "refused" or all(link.site or link.mac is None for link in enrolment.links):
            return False
        return self._steady() - self._heard[enrolment.name] < LOOKED_FOR_SECONDS

    def locate(self, announcement: str, mac: str, site: Site, listed: Listed) -> list[Move]:
        """A packet that a host announces an interface with came in at a port. Returns the hosts that are elsewhere now.

        Only the host knows its announcement. A port that is another's is not taken, and becomes a problem to show,
        unless that host has announced itself elsewhere by now.
        """
        for name in self._index.of_mac(mac):
            if secrets.compare_digest(self._known[name].announcement, announcement):
                seat = Seat(name, mac)
                self._announced.note(seat, site)
                return self._place_all(seat, listed)
        return []

    def _place_all(self, first: Seat, listed: Listed) -> list[Move]:
        """Put an interface to where it has announced itself, and then those for whom that makes a port free."""
        moves, seats = [], deque([first])
        while seats:
            seat = seats.popleft()
            site, link = self._announced.site(seat), self._known[seat.host].link_with(seat.mac)
            if site is None or link is None or link.site == site:
                continue
            why_not = self._why_not_at(seat, link, site, listed)
            if why_not is not None:
                self._announced.say(seat, why_not)
                continue
            left = self._give_up(site, seat.host)
            moved = self._save(self._known[seat.host].moved(seat.mac, site))
            moves.append(Move(moved, link.interface if len(moved.links) > 1 else None, link.site, site))
            self._announced.note(seat, site)
            seats += [left] if left is not None else []
            seats += [each for each in self._announced.misplaced if self._announced.site(each) == link.site]
        return moves

    def _why_not_at(self, seat: Seat, link: Link, site: Site, listed: Listed) -> str | None:
        """Returns why an interface that has announced itself at a port cannot be there; None: it can."""
        known = self._known[seat.host]
        who = str(link.interface) if len(known.links) > 1 else "it"
        if link.found_by == "operator":
            said = f"{who} has announced itself at {site}, and an operator has said {link.site}"
            return f"{said}; approve it again with --switch and --port if it has moved"
        if (own := known.link_at(site)) is not None and not self._announced.has_left(known, site):
            return f"{who} has announced itself where it cannot be: {site} is that of {own.interface}"
        for clash in clashes(known.moved(seat.mac, site), listed.holders, self._index.held):
            if clash.claim != Claim("port", site):
                continue
            holder = self._known.get(clash.holder) if clash.holder not in listed.names else None
            if not (holder is not None and self._announced.has_left(holder, site)):
                return f"{who} has announced itself where it cannot be: {clash}"
        return None

    def _give_up(self, site: Site, taker: str) -> Seat | None:
        """Take a port away from the interface that has left it; returns it, or None where the port was free."""
        known = self._known[self._index.held.get(Claim("port", site), taker)]
        link = known.link_at(site)
        if link is None or link.mac is None:
            return None
        self._save(known.moved(link.mac, None))
        return Seat(known.name, link.mac)

    def _enter(self, asking: Enrolment, listed: Listed) -> Enrolment:
        self._check_free(asking, listed)
        return self._save(asking)

    def _add_to(self, known: Enrolment, request: HostRequest, listed: Listed) -> Enrolment:
        """A host that waits says something else than before. Only what it had not told is taken.

        An operator may be looking at what it has told first, and approves that.
        """
        whole = completed(known.request, request)
        if whole != known.request:
            known = self._enter(replace(known, request=whole), listed)
        if whole == completed(request, whole):
            self._unlike.discard(known.name)
        else:
            self._unlike.add(known.name)
        return known

    # Room, and the journal.

    def forget_silent(self) -> list[str]:
        """Forget hosts that wait and have not asked for a long time; returns their names."""
        now = self._steady()
        silent = [
            name
            for name, known in self._known.items()
            if known.state == "pending" and now - self._heard[name] > SILENT_SECONDS
        ]
        for name in silent:
            self.remove(name)
        return silent

    def _check_room(self, asked_from: str, request: HostRequest, bounds: Bounds) -> None:
        if any(known.request.token_sha256 == request.token_sha256 for known in self._known.values()):
            raise Conflict("another host has asked with this token; each makes its own")
        self.forget_silent()
        waiting = Counter(network_of(known.asked_from) for known in self._known.values() if known.state != "approved")
        if waiting.total() >= bounds.most_waiting:
            raise Conflict(
                f"{bounds.most_waiting} hosts wait or are refused, which is the most; an operator approves or removes "
                "some (trainyard hosts)"
            )
        if waiting[network_of(asked_from)] >= bounds.most_waiting_per_address:
            raise Conflict(
                f"{bounds.most_waiting_per_address} hosts that asked from {asked_from} wait or are refused, which is "
                "the most; an operator approves or removes some, or raises enrolment.most_waiting_per_address"
            )

    def _check_free(self, asking: Enrolment, listed: Listed) -> None:
        found = clashes(asking, listed.holders, self._index.held)
        if found:
            raise Conflict(
                f"{asking.name} cannot be enrolled: {found[0].told}",
                [(clash.claim.kind, clash.told) for clash in found],
            )

    def _save(self, enrolment: Enrolment) -> Enrolment:
        before = self._known.get(enrolment.name)
        if before is not None:
            self._index.drop(before)
        self._known[enrolment.name] = enrolment
        self._index.add(enrolment)
        self._heard.setdefault(enrolment.name, self._steady())
        self._store.put(KIND, enrolment.name, enrolment.to_body().model_dump_json())
        return enrolment

    def _dump(self, batch: Batch) -> Steps[None]:
        yield
        for enrolment in list(self._known.values()):
            put(batch, KIND, enrolment.name, enrolment.to_body().model_dump_json())


def _other_link_of(known: Enrolment, address: str | None) -> str | None:
    """Returns the interface that has told an address, where it is none of the first one's."""
    others = known.links[1:] if address is not None else ()
    return next((link.interface for link in others if address in link.addresses), None)


def _load(contents: Contents) -> dict[str, Enrolment]:
    """Returns the hosts that a journal holds. Raises StoreError for a damaged record."""
    known = {}
    for name, text in contents.records.get(KIND, {}).items():
        damaged = (KIND, name) in contents.damaged
        try:
            known[name] = Enrolment.from_body(name, EnrolmentBody.model_validate_json(text))
        except ValidationError:
            damaged = True
        if damaged:
            raise StoreError(
                f"journal {contents.path}: its record of {KIND} {name!r} is damaged; put back a copy from before, or "
                "move the file away to begin without it"
            )
    return known
