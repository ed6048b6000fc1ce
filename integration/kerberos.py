"""A realm of MIT Kerberos with its own key distribution centre, on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink_lab.testing.cluster_admin import port_answers
from eos_sink_lab.testing.network_links import free_ports
from eos_sink_lab.testing.waiting import wait_until

REALM = "EOS.TEST"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
_PATIENCE_S = 30.0

_CLIENT = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
_SERVER = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {home}/principal
    key_stash_file = {home}/stash
  }}
"""


def is_installed() -> bool:
    """True if this machine has the programs (Debian: krb5-kdc and krb5-admin-server)."""
    return all(shutil.which(name, path=_PATH) for name in _PROGRAMS)


class Realm:
    """Runs until it is closed.

    Attributes:
        config: krb5.conf.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        (port,) = free_ports(1)
        self.config = home / "krb5.conf"
        self.config.write_text(_CLIENT.format(realm=REALM, port=port))
        server = home / "kdc.conf"
        server.write_text(_SERVER.format(realm=REALM, port=port, home=home))
        self._environ = {
            **os.environ,
            "PATH": _PATH,
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(server),
        }
        self._run("kdb5_util", "create", "-s", "-P", "master")
        self._process = subprocess.Popen(["krb5kdc", "-n"], env=self._environ)
        wait_until(
            lambda: port_answers(f"127.0.0.1:{port}"), Deadline(_PATIENCE_S), "the KDC answers"
        )

    def make_keytab(self, principal: str) -> Path:
        """Add a principal; its keys."""
        keytab = self._home / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        return keytab

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _run(self, *command: str) -> None:
        subprocess.run(command, env=self._environ, check=True, capture_output=True)
