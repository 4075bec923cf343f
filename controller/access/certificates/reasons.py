"""Why a TLS handshake has failed, in words that name the remedy's place. Pure."""

from __future__ import annotations

import ssl

_OF_VERIFICATION = {
    2: "its certificate is of an authority that is not trusted here",
    3: "there is no list of revoked certificates (CRL) of the authority of its certificate",
    7: "its certificate is not signed by the authority that it names",
    8: "the list of revoked certificates (CRL) is not signed by the authority that it names",
    9: "its certificate is not valid yet: compare the clocks",
    10: "its certificate has expired",
    12: "the list of revoked certificates (CRL) has expired: make a new one",
    18: "its certificate is of no authority: it signs itself",
    19: "its certificate is of an authority that is not trusted here",
    20: "its certificate is of an authority that is not trusted here",
    21: "its certificate is of an authority that is not trusted here",
    23: "its certificate is revoked",
    26: "its certificate is for another purpose",
}
"""By OpenSSL's number of the error of a certificate's verification (X509_V_ERR)."""

_OF_THE_PROTOCOL = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate",
    "UNSUPPORTED_PROTOCOL": "its TLS is older than 1.2",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it does not speak TLS",
    "WRONG_SSL_VERSION": "its TLS is older than 1.2",
    "NO_SHARED_CIPHER": "it knows none of the ciphers that are allowed here",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority of the certificate shown to it",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses the certificate shown to it",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the certificate shown to it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the certificate shown to it is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it refuses the certificate shown to it",
    "TLSV1_ALERT_PROTOCOL_VERSION": "its TLS is older than 1.2",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it demands a certificate",
}
"""By the name of OpenSSL's error."""


def reason(error: BaseException) -> str:
    """Returns why the handshake with a peer that raised ``error`` has failed; "it" is the peer."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _OF_VERIFICATION.get(error.verify_code, f"its certificate is not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        return "it has ended the connection amid the handshake"
    name = error.reason or ""
    return _OF_THE_PROTOCOL.get(name, f"its TLS handshake is broken: {name or error}")
