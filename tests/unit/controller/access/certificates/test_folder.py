"""What ``trainyard certs`` writes: nothing over what is there, keys for their owner alone, and lists that grow."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from controller.access.certificates.authority import utc_now
from controller.access.certificates.contexts import CertificateError, check_authority, check_own, check_revoked
from controller.access.certificates.folder import Folder, Wanted
from controller.access.certificates.pem import read_certificates, read_lists
from tests.support.controller.tls.yard_certificates import CONTROLLER

S1, H1 = Wanted("switch", "s1"), Wanted("host", "h1")
NOW = utc_now()


def make(folder: Folder, *wanted: Wanted, days: int = 30, replace: bool = False) -> list[str]:
    made, replaced = folder.make(wanted, days=days, replace=replace, now=NOW)
    return [f"-{path.name}" for path in replaced] + [path.name for path in made]


def names_of(path: Path) -> list[str]:
    alternative = read_certificates(path)[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each.value) for each in alternative]


def test_only_the_owner_can_read_a_key(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(Folder(tmp_path / "c"), CONTROLLER, S1, H1)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    keys = {name for name in modes if name.endswith(".key")}
    assert len(keys) == 6
    assert {modes[name] for name in keys} == {0o600}
    assert modes["authorities"] == 0o700
    assert not [name for name in modes if name.endswith(".new")]


def test_names_and_addresses_stand_in_the_certificates(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    make(folder, Wanted("controller", "controller", ("10.0.0.5", "fd00::5", "yard.example.org")), S1, H1)
    assert names_of(tmp_path / "controller.pem") == ["10.0.0.5", "fd00::5", "yard.example.org"]
    assert names_of(tmp_path / "host-h1.pem") == ["h1"]
    assert read_certificates(tmp_path / "host-h1.pem")[0].subject.rfc4514_string() == "CN=h1"
    check_own(tmp_path / "host-h1.pem", tmp_path / "host-h1.key")


def test_days_are_kept_and_end_with_the_authority(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    make(folder, S1, days=7)
    assert read_certificates(tmp_path / "switch-s1.pem")[0].not_valid_after_utc == NOW + timedelta(days=7)
    later = NOW + timedelta(days=3600)
    folder.make([Wanted("switch", "s2")], days=3000, replace=False, now=later)
    end = read_certificates(folder.authority_of("switch"))[0].not_valid_after_utc
    assert read_certificates(tmp_path / "switch-s2.pem")[0].not_valid_after_utc == end


def test_nothing_is_overwritten_unless_it_is_asked_for(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    make(folder, CONTROLLER, S1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(CertificateError, match=r"switch-s1\.pem exists already; --replace makes a new certificate"):
        make(folder, Wanted("switch", "s0"), S1)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    said = make(folder, Wanted("switch", "s0"), S1, replace=True)
    assert said == ["-switch-s1.pem", "-switch-s1.key", "switch-s0.pem", "switch-s0.key"]
    changed = {path.name for path, data in before.items() if path.read_bytes() != data}
    assert changed == {"switch-s1.pem", "switch-s1.key", "issued-switch.txt"}


def test_an_authority_without_its_key_is_not_made_anew(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    make(folder, S1)
    key = folder.secret / "ca-switch.key"
    kept = key.rename(tmp_path / "kept")
    with pytest.raises(CertificateError, match=r"ca-switch\.pem is there without the other file of its authority"):
        make(folder, Wanted("switch", "s2"))
    kept.rename(key)
    assert make(folder, Wanted("switch", "s2")) == ["switch-s2.pem", "switch-s2.key"]


def test_all_certificates_of_a_name_are_revoked_and_earlier_ones_stay_so(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    make(folder, S1, H1, Wanted("switch", "s2"))
    serials = [read_certificates(tmp_path / "switch-s1.pem")[0].serial_number]
    make(folder, S1, replace=True)
    serials.append(read_certificates(tmp_path / "switch-s1.pem")[0].serial_number)
    assert folder.revoke(["s1"], NOW) == [folder.revoked_of("switch")]
    serials.append(read_certificates(tmp_path / "switch-s2.pem")[0].serial_number)
    folder.revoke(["switch-s2"], NOW)
    (revoked,) = read_lists(folder.revoked_of("switch"))
    assert {each.serial_number for each in revoked} == set(serials)
    (none,) = read_lists(folder.revoked_of("host"))
    assert list(none) == []
    assert revoked.is_signature_valid(read_certificates(folder.authority_of("switch"))[0].public_key())


def test_a_name_that_two_have_needs_its_role(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    make(folder, Wanted("switch", "both"), Wanted("host", "both"))
    with pytest.raises(CertificateError, match="both is the name of more than one: switch-both or host-both"):
        folder.revoke(["both"], NOW)
    assert folder.revoke(["host-both"], NOW) == [folder.revoked_of("host")]
    with pytest.raises(CertificateError, match="no certificate of a switch or a host named none was made in"):
        folder.revoke(["none"], NOW)


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match="file cannot be read or written: File exists"):
        make(Folder(tmp_path / "file"), S1)


def test_no_name_takes_the_place_of_an_authority_or_a_list(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    names = [Wanted("switch", name) for name in ("ca", "revoked", "controller", "issued")]
    made = make(folder, *names)
    assert len(made) == len(set(made))
    check_authority(folder.authority_of("switch"))
    check_revoked(folder.revoked_of("switch"))


def _theirs(folder: Folder) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder.path, 12345, -1)


def _linked(folder: Folder) -> None:
    elsewhere = folder.path.with_name("elsewhere")
    folder.secret.rename(elsewhere)
    folder.secret.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_theirs, "is another user's, who could exchange the keys in it"),
        (_linked, "authorities is no folder of its own, but a link or a file"),
        (lambda folder: folder.path.chmod(0o777), "others may write into .*yard, and could exchange the keys in it"),
        (lambda folder: folder.secret.chmod(0o770), "others may write into .*authorities, and could exchange"),
    ],
)
def test_a_folder_in_which_others_can_put_an_authority_is_refused(
    tmp_path: Path, spoil: Callable[[Folder], None], said: str
) -> None:
    folder = Folder(tmp_path / "yard")
    folder.make([Wanted("switch", "s1")], days=1, replace=False, now=utc_now())
    spoil(folder)
    before = sorted(folder.path.iterdir())
    with pytest.raises(CertificateError, match=said):
        folder.make([Wanted("switch", "s2")], days=1, replace=False, now=utc_now())
    with pytest.raises(CertificateError, match=said):
        folder.revoke(["s1"], utc_now())
    assert sorted(folder.path.iterdir()) == before


def test_the_folder_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = Folder(tmp_path / "yard")
        folder.make([Wanted("host", "h1")], days=1, replace=False, now=utc_now())
    finally:
        os.umask(before)
    assert (folder.path.stat().st_mode & 0o777, folder.secret.stat().st_mode & 0o777) == (0o755, 0o700)
    folder.make([Wanted("host", "h2")], days=1, replace=False, now=utc_now())
