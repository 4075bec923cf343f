"""The settings that can change at run time: the policy, its options, the period, and whether all is paused."""

from __future__ import annotations

import json
import logging
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from controller.config.config import GATE_PERIODS, Config
from controller.journal.store import Batch, Store, put
from controller.pieces import Steps
from controller.policies.base import Policy
from controller.policies.registry import PolicyError, make
from controller.refusals import Invalid
from controller.wire import Settings

LOG = logging.getLogger("trainyard.settings")
_KIND, _ID = "settings", "run-time"
_PAUSE_ID = "pause"
"""A record of this id is in the journal while an operator has paused. It does not depend on the settings file."""
_PAUSED = '{"pause":true}'


class _Record(BaseModel):
    """The journal's record. ``file``: the settings file at that time; if the file has changed, the record is void."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    policy: str
    policy_options: dict[str, Any]
    period_seconds: float
    file: dict[str, Any]


class RunSettings:
    """The settings in force: those of the file, or those that an operator set after the file was last changed."""

    def __init__(self, config: Config, store: Store) -> None:
        self._gate_seconds = config.gate_seconds
        self._lease_seconds = config.lease_seconds
        self._store = store
        self._file = _of_file(config)
        self.period_seconds = config.period_seconds
        self.policy: Policy = make(config.policy, config.policy_options)
        self._options: dict[str, Any] = dict(config.policy_options)
        contents = store.contents()
        records = contents.records.get(_KIND, {})
        self.is_paused = _PAUSE_ID in records
        """Whether an operator has paused. A damaged record of it counts too."""
        self._restore(records.get(_ID), is_damaged=(_KIND, _ID) in contents.damaged)
        store.add_source(self._dump)

    def view(self) -> Settings:
        """Returns the settings as the API shows them."""
        return Settings(
            policy=self.policy.name,
            policy_options=dict(self.policy.options()),
            period_seconds=self.period_seconds,
            pause=self.is_paused,
        )

    def change(self, wanted: Settings) -> bool:
        """Change the settings that ``wanted`` names; returns whether any has changed.

        Another policy without options gets its defaults. Where it raises Invalid, nothing has changed.
        """
        period = wanted.period_seconds if wanted.period_seconds is not None else self.period_seconds
        _check_period(period, self._gate_seconds, self._lease_seconds)
        policy, options = self.policy_of(wanted), self._options_of(wanted)
        before = self._record()
        self.policy, self._options, self.period_seconds = policy, options, period
        changed = self._record() != before
        if changed:
            self._store.put(_KIND, _ID, self._text())
        return self._set_pause(wanted.pause) or changed

    def _set_pause(self, pause: bool | None) -> bool:
        if pause is None or pause == self.is_paused:
            return False
        self.is_paused = pause
        if pause:
            self._store.put(_KIND, _PAUSE_ID, _PAUSED)
        else:
            self._store.remove(_KIND, _PAUSE_ID)
        return True

    def of_file(self, config: Config) -> Settings:
        """Returns what would be in force with the settings file ``config``.

        The policy, its options and the period of the file take the place of those that were set at run time if the file
        has changed them. Raises Invalid if those set at run time do not fit to the file.
        """
        if _of_file(config) != self._file:
            return Settings(
                policy=config.policy, policy_options=dict(config.policy_options), period_seconds=config.period_seconds
            )
        _check_period(self.period_seconds, config.gate_seconds, config.lease_seconds)
        return self.view()

    def follow_file(self, config: Config, policy: Policy) -> None:
        """Put a changed settings file in force. ``policy`` is the one that ``of_file`` names."""
        self._gate_seconds, self._lease_seconds = config.gate_seconds, config.lease_seconds
        if _of_file(config) == self._file:
            return
        self._file = _of_file(config)
        self.policy, self._options, self.period_seconds = policy, dict(config.policy_options), config.period_seconds
        self._store.put(_KIND, _ID, self._text())

    def policy_of(self, wanted: Settings) -> Policy:
        """Returns the policy that ``wanted`` names, or else the one in force; raises Invalid."""
        name = wanted.policy if wanted.policy is not None else self.policy.name
        try:
            return make(name, self._options_of(wanted))
        except PolicyError as error:
            raise Invalid([(policy_field(wanted), str(error))]) from error

    def _options_of(self, wanted: Settings) -> dict[str, Any]:
        if wanted.policy_options is not None:
            return dict(wanted.policy_options)
        return dict(self._options) if wanted.policy in (None, self.policy.name) else {}

    def _text(self) -> str:
        return json.dumps(self._record(), separators=(",", ":"))

    def _record(self) -> dict[str, Any]:
        return {
            "policy": self.policy.name,
            "policy_options": self._options,
            "period_seconds": self.period_seconds,
            "file": self._file,
        }

    def _restore(self, text: str | None, *, is_damaged: bool) -> None:
        if text is None:
            return
        if is_damaged:
            LOG.warning("the journal's settings are damaged and left out: their checksum is wrong")
            self._store.remove(_KIND, _ID)
            return
        try:
            record = _Record.model_validate_json(text)
            if record.file == self._file:
                self.change(Settings.model_validate(record.model_dump(exclude={"file"})))
                return
            LOG.info("the settings file has changed: what was set at run time no longer holds")
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            LOG.warning("the journal's settings are damaged and left out: %s: %s", place, fault["msg"])
        except Invalid as error:
            LOG.warning("what was set at run time no longer holds: %s", error)
        self._store.remove(_KIND, _ID)

    def _dump(self, batch: Batch) -> Steps[None]:
        yield
        put(batch, _KIND, _ID, self._text())
        if self.is_paused:
            put(batch, _KIND, _PAUSE_ID, _PAUSED)


def _of_file(config: Config) -> dict[str, Any]:
    """Returns the settings of a file that can also be set at run time."""
    return {
        "policy": config.policy,
        "policy_options": config.policy_options,
        "period_seconds": config.period_seconds,
    }


def _check_period(period: float, gate_seconds: int, lease_seconds: float) -> None:
    """Raises Invalid for a period that is too long for the switches' gates or the hosts' leases."""
    if gate_seconds <= GATE_PERIODS * period:
        limit = gate_seconds / GATE_PERIODS
        problem = f"{period:g} s; the switches' gate of {gate_seconds} s needs a period under {limit:g} s"
        raise Invalid([("period_seconds", problem)])
    if period > lease_seconds:
        problem = f"{period:g} s; the hosts' lease of {lease_seconds:g} s must last at least a period"
        raise Invalid([("period_seconds", problem)])


def policy_field(wanted: Settings) -> str:
    """Returns the field at fault where the policy that ``wanted`` names cannot be used."""
    return "policy_options" if wanted.policy_options is not None else "policy"
