"""What can change at run time: the policy, its options and the period."""

from __future__ import annotations

import logging
from typing import Any

from controller.config import GATE_PERIODS, Config
from controller.policies._base import Policy
from controller.policies.registry import PolicyError, make
from controller.refusals import Invalid
from controller.store import Batch, Store, put
from controller.wire import Settings

LOG = logging.getLogger("trainyard.settings")
_KIND, _ID = "settings", "run-time"


class RunSettings:
    """The settings in force: those of the file, or those that an operator set after the file was last changed."""

    def __init__(self, config: Config, store: Store) -> None:
        self._gate_seconds = config.gate_seconds
        self._store = store
        self._file: dict[str, Any] = {
            "policy": config.policy,
            "policy_options": config.policy_options,
            "period_seconds": config.period_seconds,
        }
        self.period_seconds = config.period_seconds
        self.policy: Policy = make(config.policy, config.policy_options)
        self._options: dict[str, Any] = dict(config.policy_options)
        self._restore(store.contents().records.get(_KIND, {}).get(_ID))
        store.add_source(self._dump)

    def view(self) -> Settings:
        """The settings as the API shows them."""
        return Settings(
            policy=self.policy.name, policy_options=dict(self.policy.options()), period_seconds=self.period_seconds
        )

    def change(self, wanted: Settings) -> bool:
        """Take what ``wanted`` names; whether anything is another now. Raises Invalid, and then changes nothing.

        Another policy without options has its defaults.
        """
        period = wanted.period_seconds if wanted.period_seconds is not None else self.period_seconds
        if self._gate_seconds <= GATE_PERIODS * period:
            limit = self._gate_seconds / GATE_PERIODS
            problem = f"{period:g} s; the switches' gate of {self._gate_seconds} s needs a period under {limit:g} s"
            raise Invalid([("period_seconds", problem)])
        name = wanted.policy if wanted.policy is not None else self.policy.name
        options = wanted.policy_options
        if options is None:
            options = self._options if name == self.policy.name else {}
        try:
            policy = make(name, options)
        except PolicyError as error:
            field = "policy_options" if wanted.policy_options is not None else "policy"
            raise Invalid([(field, str(error))]) from error
        before = self._record()
        self.policy, self._options, self.period_seconds = policy, dict(options), period
        changed = self._record() != before
        if changed:
            self._store.put(_KIND, _ID, self._record())
        return changed

    def _record(self) -> dict[str, Any]:
        return {
            "policy": self.policy.name,
            "policy_options": self._options,
            "period_seconds": self.period_seconds,
            "file": self._file,
        }

    def _restore(self, record: dict[str, Any] | None) -> None:
        if record is None:
            return
        if record["file"] != self._file:
            LOG.info("the settings file has changed: what was set at run time no longer holds")
            self._store.remove(_KIND, _ID)
            return
        try:
            self.change(Settings.model_validate({k: v for k, v in record.items() if k != "file"}))
        except (Invalid, ValueError) as error:
            LOG.warning("what was set at run time no longer holds: %s", error)
            self._store.remove(_KIND, _ID)

    def _dump(self, batch: Batch) -> None:
        put(batch, _KIND, _ID, self._record())
