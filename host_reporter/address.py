"""Where the controller is, and how it knows this host, by the options."""

from __future__ import annotations

from host_reporter.options import Options
from host_reporter.uplink.connection import Address


def address_of(options: Options) -> Address:
    """Returns the controller's address; that of a host that enrols has the enrolment token. Raises AddressError."""
    return Address(
        options.controller,
        options.enrol_token_file or options.token_file,
        options.ca_file,
        options.certificate_file,
        options.key_file,
    )
