"""Permissions and logins of a secured test cluster, as far as no broker is needed."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from cryptography.x509 import load_pem_x509_certificate

from eos_sink_lab.testing import Security, start_kafka
from eos_sink_lab.testing.cluster_errors import BackendUnavailableError
from eos_sink_lab.testing.security import Authority, jaas, security_properties


def test_a_login_survives_quotes_and_backslashes() -> None:
    assert jaas("PLAIN", username="ann", password='a"b\\c').endswith(
        'PlainLoginModule required username="ann" password="a\\"b\\\\c";'
    )


def test_nothing_is_permitted_at_the_start(tmp_path: Path) -> None:
    properties = security_properties(Security({"ann": "x"}), Authority(tmp_path))
    assert properties["allow.everyone.if.no.acl.found"] == "false"
    assert "ann" not in properties["super.users"]


def test_a_certificate_is_renewed_at_its_path(tmp_path: Path) -> None:
    authority, expired = Authority(tmp_path), datetime(2001, 1, 1, tzinfo=timezone.utc)
    first = authority.identity("ann")
    before = first.both.read_bytes()
    assert authority.renew("ann", expired) == authority.identity("ann") == first
    assert load_pem_x509_certificate(first.chain.read_bytes()).not_valid_after_utc == expired
    assert first.both.read_bytes() != before


def test_without_trustme_the_error_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(BackendUnavailableError):
        Authority(tmp_path)


def test_passwords_are_not_shown() -> None:
    assert "hidden" not in repr(Security({"ann": "hidden"}))


def test_a_secured_cluster_is_local_and_not_proxied() -> None:
    with pytest.raises(ValueError, match="proxied"):
        start_kafka(security=Security(), proxied=True, backend="local")
    with pytest.raises(ValueError, match="containers"):
        start_kafka(security=Security(), backend="containers")
