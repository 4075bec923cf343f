from __future__ import annotations

from pathlib import Path

import pytest

from controller.config.config import ConfigError, is_loopback, load_config
from tests.support.controller.settings_file import load

GOOD = """
policy: fifo
period_seconds: 1
gate_seconds: 15
hosts:
  - {name: h1, address: 10.0.0.1, ingress_bps: 1e9, switch: "0000000000000001", port: 1}
  - {name: h2, address: 10.0.0.2, switch: 1, port: 2}
untrusted_hosts: [h2]
links: [{a: 1, a_port: 9, b: "2", b_port: 9, rate_bps: 4e7}]
api: {port: 0, token: 0123456789abcdef, host_tokens: {h1: fedcba9876543210}}
"""
LAUGHS = "".join(f"{chr(k + 1)}: &{chr(k + 1)} [{','.join([f'*{chr(k)}'] * 9)}]\n" for k in range(97, 108))


def test_defaults_are_safe() -> None:
    config = load_config(None)
    assert config.api.host == config.openflow.host == "127.0.0.1"
    assert config.journal is None
    assert config.assign == "layered"
    assert config.gate_seconds > 2 * config.period_seconds


def test_a_whole_file(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    hosts = config.host_map()
    assert hosts["h1"].ingress_bps == 1e9
    assert (hosts["h1"].switch, hosts["h2"].switch_port) == (1, 2)
    assert config.links[0].b == 2
    assert config.links[0].rate_bps == 4e7
    assert "0123456789abcdef" not in repr(config)
    assert "fedcba" not in config.model_dump_json()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_has_the_defaults(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == load_config(None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("policy: fair\nperiod: 3\n", ":2: period: unknown key; did you mean period_seconds?"),
        ("\nxyzzy: 3\n", ":2: xyzzy: unknown key; there are: api, assign, audit, classes,"),
        ("api:\n  prot: 3\n", ":2: api.prot: unknown key; did you mean port?"),
        ("hosts:\n- name: h1\n  adress: 1.2.3.4\n", ":3: hosts[0].adress: unknown key; did you mean address?"),
        ("hosts:\n- name: h1\n", ":2: hosts[0]: h1 has no address; set address, addresses or interfaces"),
        ("period_seconds: fast\n", ":1: period_seconds: is the text 'fast'; it should be a valid number"),
        ("hosts: [1]\n", ":1: hosts[0]: is the number 1; it should be a mapping"),
        ("period_seconds: .nan\n", ":1: period_seconds: is the number nan; it should be a finite number"),
        ("period_seconds: -1\n", "it should be greater than or equal to 0.1"),
        ("classes: 8\n", ":1: classes: is the number 8; it should be less than or equal to 7"),
        ("classes: true\n", "is the truth value true; it should be a valid integer"),
        ("probe: 1\n", ":1: probe: is the number 1"),
        ("assign: best\n", ":1: assign: is the text 'best'; it should be 'layered' or 'top'"),
        ("mode: magic\n", ":1: mode: is the text 'magic'; it should be 'classified', 'marked' or 'dscp'"),
        ("policy: fair\nclasses: 3\npolicy: fifo\n", ":3: policy: given twice, first in line 1"),
        ("policy: fif\n", ":1: policy: unknown policy 'fif'; there are: beamer, crux, fair, fifo,"),
        ("policy: fifo\npolicy_options: {x: 1}\n", ":2: policy_options: policy fifo has no option x; it has none"),
        ("period_seconds: 10\n", "gate_seconds: the gate must outlast 2 periods"),
        ("gate_seconds: 3\nperiod_seconds: 2\n", ":1: gate_seconds: the gate must outlast"),
        ("floors:\n  job_class: 0.2\n", ":1: floors: the floors of all classes together take 1.50"),
        ("api: {host: 0.0.0.0}\n", ":1: api: listens on 0.0.0.0, which others can reach, without a token"),
        ("api: {token: short}\n", ":1: api.token: a token has at least 8"),
        ("api: {token: 12345678}\n", ":1: api.token: is not usable"),
        ("api: {host_tokens: {h1: 0123456789abcdef}}\n", "hosts have tokens but the API has none"),
        ("api: {token: abcdefgh, host_tokens: {h1: ijklmnop}}\n", ":1: api: unknown host 'h1'; hosts has: none"),
        ("api: {tls_certificate: /nowhere/c}\n", "/nowhere/c cannot be read"),
        ("hosts: [{name: a, address: 1.1.1.1}, {name: a, address: 1.1.1.2}]\n", "a and a have the same name"),
        ("hosts: [{name: a, address: 1.1.1.1}, {name: b, address: 1.1.1.1}]\n", "b and a have the same address"),
        ("hosts: [{name: a, address: fe80::1}]\n", "fe80::1 is valid on one link alone"),
        ("hosts: [{name: a, address: 1.1.1.1, port: 3}]\n", "a port needs its switch"),
        ("hosts: [{name: a, address: 1.1.1.1, switch: s1}]\n", "'s1' is no datapath id"),
        ("control_traffic: {ports: [{switch: s1, port: 3}]}\n", "'s1' is no datapath id"),
        (
            "control_traffic: {ports: [{switch: 1, port: 3}, {switch: 1, port: 3}]}\n",
            "port 3 of switch 0x1 is named twice",
        ),
        ("control_traffic: {share: 2}\n", ":1: control_traffic.share: is the number 2; it should be less than"),
        (
            "hosts: [{name: a, address: 1.1.1.1, switch: 1, port: 3}]\nuntrusted_hosts: [a]\n"
            "control_traffic: {ports: [{switch: 1, port: 3}]}\n",
            ":3: control_traffic: port 3 of switch 0x1 is that of a, and untrusted_hosts names a",
        ),
        (
            "hosts: [{name: a, interfaces: [{name: e0, address: 1.1.1.1, switch: 1, port: 3},"
            " {name: e1, address: 1.1.2.1, switch: 2, port: 3}]}]\nuntrusted_hosts: [a]\n"
            "control_traffic: {ports: [{switch: 2, port: 3}]}\n",
            ":3: control_traffic: port 3 of switch 0x2 is that of a/e1, and untrusted_hosts names a",
        ),
        ("untrusted_hosts: [h9]\n", ":1: untrusted_hosts: unknown host 'h9'"),
        ("a: [1\n", "this is no valid YAML"),
        ("- 1\n", ":1: the file holds a list; it must hold settings"),
        ("a: &x [*x]\n", "contains itself"),
        ("? [1, 2]\n: 3\n", "a key must be a word"),
        ("journal: !!python/name:os.system ''\n", "this is no valid YAML"),
        ("policy: fair\nprobe: !!bool foo\n", ":2: probe: 'foo' is no bool"),
        ('\nclasses: !!int ""\n', ":2: classes: '' is no int"),
        ("journal: !!timestamp foo\n", ":1: journal: 'foo' is no timestamp"),
        ("policy: fair\na: " + "[" * 100_000, ":2: nested deeper than 50 levels"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + LAUGHS, "more than 300000 values"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_field(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value)
    assert str(tmp_path / "conf.yaml") in str(caught.value)


def test_every_fault_has_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "clases: 3\nprobe: 7\n")
    assert len(str(caught.value).splitlines()) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "none.yaml")


def test_binary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_bytes(b"\xff\x00\xfe")
    with pytest.raises(ConfigError, match=r"conf.yaml:1: byte 1 of the file \(0xff\) is no UTF-8 text"):
        load_config(path)
    path.write_bytes(b"policy: fair\n\nprobe: \x01\n")
    with pytest.raises(ConfigError, match=r"conf.yaml:3: character 0x1 may not be in it"):
        load_config(path)


H1, H2 = "{name: h1, address: 10.0.0.1}", "{name: h2, address: 10.0.0.2, switch: 1, port: 2}"

OIDC = "api: {{oidc: {{issuer: i, audience: a, keys: '{keys}', roles: {{admin: {role}}}}}}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\nhosts: [{H1}]\nuntrusted_hosts: [h1]\n", ":3: untrusted_hosts: where h1 is plugged in is not known"),
        ("policy: fair\napi: {port: 6653}\n", ":2: api: port 6653 is that of openflow too"),
        ("openflow: {port: 8080}\n", "api: port 8080 is that of openflow too"),
        (f"forwarding: paths\nhosts: [{H1}]\n", ":2: hosts: h1 has no switch and port; forwarding: paths"),
        ("\nlinks: [{a: 1, a_port: 1, b: 1, b_port: 2}]\n", ":2: links[0].b: switch 0x1 is at both ends"),
        (
            "links: [{a: 1, a_port: 2, b: 2, b_port: 2}, {a: 1, a_port: 2, b: 3, b_port: 3}]\n",
            "links: port 2 of switch 0x1 is that of links[0] and of links[1]",
        ),
        (
            f"hosts: [{H2}]\nlinks: [{{a: 1, a_port: 2, b: 2, b_port: 2}}]\n",
            ":2: links: port 2 of switch 0x1 is that of host h2 and of links[0]",
        ),
        (
            "api:\n  token: abcdefgh\n  tls_certificate: /etc/hostname\n  tls_key: /etc/hostname\n",
            ":4: api.tls_key: the certificate /etc/hostname and the key /etc/hostname cannot be used together",
        ),
        ("openflow: {host: not a host}\n", ":1: openflow.host: 'not a host' is no address and no host's name"),
        ("openflow: {host: 10.0.0.300}\n", ":1: openflow.host: '10.0.0.300' is no address"),
        ("api: {host: ''}\n", ":1: api.host: '' is no address"),
        ('\njournal: ""\n', ":2: journal: it names a folder"),
        ("journal: /tmp\n", ":1: journal: it names a folder"),
        (f"journal: /tmp/{'j' * 300}\n", ":1: journal: it cannot be a file's name: File name too long"),
        *(
            (
                f"hosts: [{{name: a, address: {address}}}]\n",
                f":1: hosts[0].address: {address} is the address of no single",
            )
            for address in ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255")
        ),
        ("control_addresses: [0.0.0.0]\n", ":1: control_addresses[0]: 0.0.0.0 is the address of no single"),
        (
            "period_seconds: 1000\ngate_seconds: 3000\nlease_seconds: 5\n",
            ":3: lease_seconds: a lease of 5 s would run out between two plans",
        ),
        ("api: 3\n", ":1: api: it must be a mapping of settings, or be left out"),
        ("\napi: {oidc: 3}\n", ":2: api.oidc: it must be a mapping of settings, or be left out"),
        ("api: {tokens_file: /no/such}\n", ":1: api.tokens_file: /no/such cannot be read: No such file or directory"),
        ("api: {client_authority: /etc/hostname}\n", ":1: api.client_authority: client certificates need https; set"),
        ("api: {metrics_port: 8080}\n", ":1: api: metrics_port 8080 is that of another listener; each needs its own"),
        ("api: {metrics_port: 6653}\n", ":1: api: metrics_port 6653 is that of another listener; each needs its own"),
        (OIDC.format(keys="http://id.example.org/k", role="viewer"), "keys: keys over http could be exchanged"),
        (OIDC.format(keys="/no/such", role="viewer"), "api.oidc.keys: /no/such cannot be read"),
        (OIDC.format(keys="https://id.example.org/k", role="host"), "it should be 'operator', 'viewer' or 'tenant'"),
        ("api: {oidc: {issuer: i, audience: a, keys: https://k, roles: {}}}\n", "api.oidc.roles: is an empty mapping"),
        ("policy: las\npolicy_options: {factor: 1e400}\n", ":2: policy_options: policy las: factor: inf"),
        (
            "policy: jpas\npolicy_options: {margin: 2024-01-01}\n",
            ":2: policy_options: policy jpas: margin: '2024-01-01'",
        ),
    ],
)
def test_settings_that_could_not_work_are_refused_before_the_start(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value)


def test_any_proof_of_callers_opens_other_addresses_than_loopback(tmp_path: Path) -> None:
    (tmp_path / "tokens.yaml").write_text("")
    for proof in (
        "token: at-least-eight",
        f"tokens_file: {tmp_path}/tokens.yaml",
        "oidc: {issuer: i, audience: a, keys: 'https://id.example.org/k', roles: {admin: operator}}",
    ):
        assert load(tmp_path, f"api: {{host: 10.0.0.1, {proof}}}\n").api.is_guarded
    with pytest.raises(ConfigError, match="without a token"):
        load(tmp_path, "api: {host: 10.0.0.1}\n")
    assert not load(tmp_path, "").api.is_guarded


@pytest.mark.parametrize("section", ["api", "openflow", "floors", "policy_options"])
def test_an_empty_section_has_its_defaults(tmp_path: Path, section: str) -> None:
    assert load(tmp_path, f"{section}:\n") == load_config(None)


def test_addresses_and_names_to_listen_at(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "localhost", "yard-1.example.org", "::1"):
        assert (
            load(
                tmp_path, f"openflow: {{host: '{host}', insecure: {str(not is_loopback(host)).lower()}}}\n"
            ).openflow.host
            == host
        )


@pytest.mark.parametrize("text", ["tcp:10.0.0.9:6640", "tcp:[fe80::1]:6640", "unix:/run/db.sock"])
def test_one_database_for_all_switches(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, f"ovsdb: '{text}'\n").ovsdb == text


def test_each_switch_may_have_a_database_of_its_own(tmp_path: Path) -> None:
    own = 'ovsdb:\n  "0000000000000001": tcp:10.0.0.1:6640\n  1a: unix:/run/db.sock\n  2: tcp:10.0.0.2:6640\n'
    assert load(tmp_path, GOOD + own).ovsdb == {
        1: "tcp:10.0.0.1:6640",
        0x1A: "unix:/run/db.sock",
        2: "tcp:10.0.0.2:6640",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\novsdb: 10.0.0.1\n", ":2: ovsdb: '10.0.0.1' is no address of a database; it is written like tcp:"),
        ("ovsdb: {1: 10.0.0.1}\n", ":1: ovsdb: '10.0.0.1' is no address"),
        ("ovsdb: [tcp:10.0.0.1:6640]\n", "is no address of a database"),
        ("ovsdb: {}\n", "ovsdb: it names no switch; give an address, or one for each switch"),
        ("ovsdb: {s1: tcp:10.0.0.1:6640}\n", "ovsdb: 's1' is no datapath id"),
        ("ovsdb: {0: tcp:10.0.0.1:6640}\n", "ovsdb: '0' is no datapath id; it is from 1"),
        ("ovsdb: {1: tcp:10.0.0.1:6640, '01': tcp:10.0.0.2:6640}\n", "ovsdb: switch 0x1 is named twice"),
        (
            "ovsdb: {2: tcp:10.0.0.1:6640}\nhosts: [{name: a, address: 10.0.0.1, switch: 1, port: 2}]\n",
            ":1: ovsdb: switch 0x1 of host a has no address here; there are: 0x2",
        ),
        (
            "ovsdb: {2: tcp:10.0.0.1:6640}\nlinks: [{a: 2, a_port: 1, b: 10, b_port: 2}]\n",
            ":1: ovsdb: switch 0xa of links[0] has no address here",
        ),
    ],
)
def test_databases_that_cannot_be_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value)
