"""Which open connections a renewal leaves, and what is said of files that expire."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from controller.access.certificates.accepted import Judge
from controller.access.certificates.authority import make_authority, make_certificate, make_list, utc_now
from controller.access.certificates.contexts import CertificateError
from controller.access.certificates.expiry import Expiries
from controller.access.certificates.pem import read_lists
from tests.support.controller.tls.yard_certificates import YardCertificates

NOW = utc_now()
FIRST, SECOND = make_authority("switch", NOW), make_authority("switch", NOW)
PEER = make_certificate(FIRST, "switch", "s1", days=30, now=NOW).certificate
DER = PEER.public_bytes(Encoding.DER)
BEFORE = Judge((FIRST.certificate,), ())


@pytest.mark.parametrize(
    ("judge", "when", "expected"),
    [
        (BEFORE, NOW, None),
        (Judge((SECOND.certificate, FIRST.certificate), (make_list(FIRST, (), NOW),)), NOW, None),
        (BEFORE, NOW + timedelta(days=31), "its certificate has expired"),
        (
            Judge((FIRST.certificate,), (make_list(SECOND, (), NOW), make_list(FIRST, (PEER.serial_number,), NOW))),
            NOW,
            "its certificate is revoked",
        ),
        (Judge((SECOND.certificate,), ()), NOW, "its certificate is of an authority that is not trusted any more"),
    ],
)
def test_an_open_connection_is_judged_by_its_certificate(judge: Judge, when: datetime, expected: str | None) -> None:
    assert judge.objection(DER, BEFORE, when) == expected


def test_the_same_number_of_another_authority_is_not_revoked() -> None:
    other = make_authority("host", NOW)
    judge = Judge((FIRST.certificate,), (make_list(other, (PEER.serial_number,), NOW),))
    assert judge.objection(DER, BEFORE, NOW) is None


def test_a_certificate_below_an_authority_in_between_is_refused_only_where_an_authority_is_gone() -> None:
    between = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "between")])
    builder = x509.CertificateBuilder(name, PEER.subject, between.public_key(), 7, NOW, NOW + timedelta(days=1))
    der = builder.sign(between, SHA256()).public_bytes(Encoding.DER)
    assert Judge((SECOND.certificate, FIRST.certificate), ()).objection(der, BEFORE, NOW) is None
    expected = "its certificate may be of an authority that is not trusted any more"
    assert Judge((SECOND.certificate,), ()).objection(der, BEFORE, NOW) == expected


def test_what_cannot_be_judged_is_refused() -> None:
    assert BEFORE.objection(DER[:-1], BEFORE, NOW) == "its certificate cannot be judged again"


def test_all_lists_of_a_file_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lists.pem"
    lists = [make_list(each, (5,), NOW).public_bytes(Encoding.PEM) for each in (FIRST, SECOND)]
    file.write_bytes(b"".join(lists))
    assert [each.issuer for each in read_lists(file)] == [FIRST.certificate.subject, SECOND.certificate.subject]
    file.write_bytes(lists[0][:60] + lists[1])
    with pytest.raises(CertificateError, match=r"lists\.pem cannot be read"):
        read_lists(file)


def test_what_expires_is_said_a_month_before(tmp_path: Path) -> None:
    yard = YardCertificates(tmp_path)
    expiries = Expiries(yard.for_switches)
    moment = x509.load_pem_x509_certificate(yard.for_switches.certificate.read_bytes()).not_valid_after_utc
    assert expiries.problems(moment - timedelta(days=31)) == ()
    (soon,) = expiries.problems(moment - timedelta(days=29))
    assert soon.startswith(f"the controller's certificate expires soon: {yard.for_switches.certificate} ends at 20")
    (late,) = expiries.problems(moment)
    assert late.startswith("the controller's certificate has expired: ")
    words = [each.partition(":")[0] for each in expiries.problems(moment + timedelta(days=4000))]
    assert words == [
        "the controller's certificate has expired",
        "an authority's certificate has expired",
        "a list of revoked certificates has expired",
    ]
