"""The manifests for Kubernetes: valid by the API's own schemas, and no more rights than the agent needs."""

from __future__ import annotations

import logging
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from host_reporter.check import rights
from host_reporter.heartbeat import BEAT_SECONDS, Heartbeat
from host_reporter.notices import Notices
from host_reporter.options import Options, read_options
from tests.support.deploy.manifests import FOLDER, VERSIONS, Manifests

FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
MANIFESTS = Manifests(FILES)
DOCUMENTS, of_kind = MANIFESTS.documents, MANIFESTS.of_kind


def pod() -> dict[str, Any]:
    return dict(of_kind("DaemonSet")["spec"]["template"]["spec"])


def agent() -> dict[str, Any]:
    (container,) = pod()["containers"]
    return dict(container)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda document: f"{document['kind']}-{document['metadata']['name']}"
)
def test_a_manifest_is_what_the_api_server_takes(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_an_unknown_field_would_be_refused() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(of_kind("DaemonSet") | {"specs": {}}, VERSIONS[0], strict=True)


def test_kustomize_applies_each_file() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == [path.name for path in FILES]
    assert listed[0] == "namespace.yaml"
    assert {document["metadata"].get("namespace", "trainyard") for document in DOCUMENTS} == {"trainyard"}


def both_options(tmp_path: Path) -> list[Options]:
    """Returns the agent's options by its settings as they are, and with those that are comments there."""
    config = tmp_path / "agent.yaml"
    config.write_text(of_kind("ConfigMap")["data"]["agent.yaml"])
    commented = tmp_path / "commented.yaml"
    commented.write_text(config.read_text().replace("# interface:", "interface:"))
    arguments = [argument.replace("$(NODE_NAME)", "gpu01.example.org") for argument in agent()["args"]]
    return [
        read_options([argument.replace("/etc/trainyard/agent.yaml", str(path)) for argument in arguments], {})
        for path in (config, commented)
    ]


def test_the_agent_understands_its_options_and_its_settings(tmp_path: Path) -> None:
    for options in both_options(tmp_path):
        assert (options.host, str(options.enrol_token_file)) == ("gpu01.example.org", "/etc/trainyard/enrol-token")
        assert str(options.ca_file) == "/etc/trainyard/ca.pem"


def test_the_agent_has_capabilities_in_the_place_of_all_rights(tmp_path: Path) -> None:
    context = agent()["securityContext"]
    assert not context["privileged"]
    assert context["readOnlyRootFilesystem"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["capabilities"]["drop"] == ["ALL"]
    added = set(context["capabilities"]["add"])
    assert added == {"NET_ADMIN", "NET_RAW", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_ADMIN"}
    held = frozenset(f"CAP_{name}" for name in added)
    for options in both_options(tmp_path):
        assert not [verdict for verdict in rights.verdicts(held, options) if verdict.state != "ok"]


def test_the_agent_may_write_on_its_node_where_progress_its_token_and_the_rules_lock_are_alone() -> None:
    mounts = {mount["name"]: mount for mount in agent()["volumeMounts"]}
    on_node = {volume["name"] for volume in pod()["volumes"] if "hostPath" in volume}
    assert {name for name in on_node if not mounts[name].get("readOnly")} == {"progress", "xtables-lock", "state"}
    assert set(mounts) == {volume["name"] for volume in pod()["volumes"]}


def test_the_token_is_a_file_from_a_secret_and_none_is_in_the_manifests() -> None:
    (mount,) = (mount for mount in agent()["volumeMounts"] if mount["name"] == "token")
    assert mount["readOnly"]
    assert not [document for document in DOCUMENTS if document["kind"] == "Secret"]
    (volume,) = (volume for volume in pod()["volumes"] if volume["name"] == "token")
    assert volume["secret"]["defaultMode"] == 0o400


def test_a_node_is_ready_when_the_agents_check_of_it_finds_all_it_needs() -> None:
    shell, flag, command = agent()["readinessProbe"]["exec"]["command"]
    assert (shell, flag) == ("sh", "-c")
    words = shlex.split(command.replace('"$NODE_NAME"', "$(NODE_NAME)"))
    assert words[:3] == ["exec", "host-reporter", "check"]
    assert words[3:] == agent()["args"]


def probe(file: Path) -> int:
    """Runs the probe of liveness on another file. Returns its exit status."""
    probed = agent()["livenessProbe"]["exec"]["command"]
    options = yaml.safe_load(of_kind("ConfigMap")["data"]["agent.yaml"])
    assert options["alive_file"] in probed[-1]
    command = [*probed[:-1], probed[-1].replace(options["alive_file"], str(file))]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_an_agent_lives_as_long_as_its_main_loop_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    assert probe(file) != 0, "it has not begun"
    Heartbeat(file, Notices(logging.getLogger("test"))).beat()
    assert probe(file) == 0
    for age, is_alive in ((100, True), (130, False)):
        os.utime(file, (time.time() - age,) * 2)
        assert (probe(file) == 0) is is_alive
    times = agent()["livenessProbe"]
    assert times["initialDelaySeconds"] > BEAT_SECONDS
    assert times["timeoutSeconds"] < times["periodSeconds"]


def test_the_file_of_the_probe_is_in_a_folder_that_the_agent_may_write_to() -> None:
    scratch = {mount["mountPath"] for mount in agent()["volumeMounts"] if mount["name"] == "scratch"}
    assert scratch == {str(Path(yaml.safe_load(of_kind("ConfigMap")["data"]["agent.yaml"])["alive_file"]).parent)}


def test_the_agents_account_has_no_rights_and_operators_cannot_read_secrets() -> None:
    assert not of_kind("ServiceAccount")["automountServiceAccountToken"]
    assert not pod()["automountServiceAccountToken"]
    assert {subject["kind"] for subject in of_kind("RoleBinding")["subjects"]} == {"Group"}
    rules = of_kind("Role")["rules"]
    assert not any({"secrets", "*"} & {*rule["resources"], *rule["verbs"]} for rule in rules)


def test_resources_are_bounded() -> None:
    resources = agent()["resources"]
    assert set(resources["requests"]) == set(resources["limits"]) == {"cpu", "memory"}


def test_nobody_connects_to_an_agent() -> None:
    policy = of_kind("NetworkPolicy")["spec"]
    assert (policy["podSelector"], policy["ingress"]) == ({}, [])
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}


def test_the_image_has_the_programs_that_the_manifest_and_the_agent_call() -> None:
    text = (FOLDER / "Containerfile").read_text()
    installed = set(re.search(r"--no-install-recommends (.*?) \\\n", text)[1].split())  # type: ignore[index]
    assert {"python3", "iptables", "iproute2", "ethtool", "util-linux"} <= installed
    assert agent()["command"][0] == "nsenter"
    assert agent()["command"][-1] == "host-reporter"
