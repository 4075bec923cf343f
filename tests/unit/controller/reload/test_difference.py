from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from controller.config.config import Config
from controller.reload.difference import CHANGED, MADE_AT_START, NEED_RESTART, SET, Change, changes

HOSTS = [{"name": "h1", "address": "10.0.0.1"}, {"name": "h2", "address": "10.0.0.2"}]


def config(**settings: Any) -> Config:
    return Config.model_validate({"hosts": HOSTS} | settings)


def test_equal_settings_have_no_changes() -> None:
    api = {"token": "0123456789abcdef", "host_tokens": {"h1": "fedcba9876543210"}}
    assert changes(config(api=api), config(api=api)) == ()


def test_a_change_names_its_field_and_its_values() -> None:
    assert changes(config(), config(policy="las", floors={"other": 0.2})) == (
        Change("policy", "jpas", "las"),
        Change("floors.other", 0.1, 0.2),
    )
    assert str(Change("policy", None, "las")) == 'policy: null -> "las"'


def test_hosts_and_links_are_compared_by_name() -> None:
    moved = [{"name": "h2", "address": "10.0.0.2"}, {"name": "h1", "address": "10.0.0.1", "egress_bps": 2e9}]
    assert changes(config(), config(hosts=moved)) == (Change("hosts.h1.egress_bps", 1e9, 2e9),)
    (gone,) = changes(config(), config(hosts=HOSTS[:1]))
    assert (gone.field, gone.before["address"], gone.after) == ("hosts.h2", "10.0.0.2", None)
    link = {"a": 1, "a_port": 9, "b": 16, "b_port": 8}
    (new,) = changes(config(), config(links=[link]))
    assert (new.field, new.before) == ("links.1:9-10:8", None)
    assert changes(config(links=[link]), config(links=[link | {"rate_bps": 1e9}])) == (
        Change("links.1:9-10:8.rate_bps", None, 1e9),
    )


def test_a_list_of_names_is_one_value() -> None:
    places = [HOSTS[0] | {"switch": 1, "port": 1}, HOSTS[1] | {"switch": 1, "port": 2}]
    before, after = config(hosts=places), config(hosts=places, untrusted_hosts=["h1"])
    assert changes(before, after) == (Change("untrusted_hosts", [], ["h1"]),)


def test_a_secret_is_never_shown() -> None:
    first, second, third = "first-secret-token", "second-secret-token", "third-secret-token"
    before = config(api={"token": first, "host_tokens": {"h1": second}})
    after = config(api={"token": third, "host_tokens": {"h2": second}})
    found = changes(before, after)
    assert found == (
        Change("api.token", SET, CHANGED),
        Change("api.host_tokens.h1", SET, None),
        Change("api.host_tokens.h2", None, SET),
    )
    for secret in (first, second, third):
        assert secret not in repr(found)


@pytest.mark.parametrize("name", sorted(NEED_RESTART))
def test_each_setting_that_needs_a_restart_exists(name: str) -> None:
    section: Any = Config
    for part in name.split("."):
        assert part in section.model_fields
        kind = section.model_fields[part].annotation
        section = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def test_a_listener_gets_tls_only_at_a_restart() -> None:
    for name in MADE_AT_START:
        assert Change(name, None, "a.pem").needs_restart
        assert Change(name, "a.pem", None).needs_restart
        assert not Change(name, "a.pem", "b.pem").needs_restart
    assert not Change("openflow.tls.certificate", "a.pem", "b.pem").needs_restart


def test_databases_of_switches_are_one_value_that_needs_a_restart(tmp_path: Path) -> None:
    (change,) = changes(config(ovsdb={1: "tcp:10.0.0.1:6640"}), config(ovsdb={2: "tcp:10.0.0.1:6640"}))
    assert change.field == "ovsdb"
    assert change.needs_restart
    (other,) = changes(config(), config(journal=str(tmp_path / "journal")))
    assert (other.field, other.before, other.needs_restart) == ("journal", None, True)


def test_who_enforces_needs_a_restart_and_both_names_of_the_identity_are_compared_by_what_they_say() -> None:
    found = changes(config(), config(enforce=["hosts"]))
    assert found == (Change("enforce", ["switches", "hosts"], ["hosts"]),)
    assert all(change.needs_restart for change in found)
    assert changes(config(enforce=["host", "switch"]), config(enforce=["switches", "hosts"])) == ()
    assert changes(config(mode="marked"), config(identity="classes")) == ()
    found = changes(config(mode="classified"), config(identity="dscp"))
    assert {change.field for change in found} == {"identity", "mode"}
    assert all(change.needs_restart for change in found)
