"""A Kerberos server for tests: Apache Kerby, in the wrapper that Hadoop tests with. Needs no root.

with Kdc(folder, "client", "kafka/localhost") as kdc:
os.environ["KRB5_CONFIG"] = str(kdc.krb5_conf)
"""

from __future__ import annotations

from pathlib import Path

from kafka_fast.testing._kafka.broker_jars import find_tool
from kafka_fast.testing._kafka.java_process import JavaProcess, PortPool, Reaper
from tests.support.jars import jars

__all__ = ["Kdc"]

ARTIFACT = "org.apache.hadoop:hadoop-minikdc:3.4.1"

KRB5_CONF = """\
[libdefaults]
default_realm = {realm}
dns_canonicalize_hostname = false
dns_lookup_kdc = false
dns_lookup_realm = false
rdns = false
udp_preference_limit = 1

[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
"""

PROPERTIES = """\
org.name=EXAMPLE
org.domain=COM
kdc.bind.address=127.0.0.1
kdc.port={port}
transport=TCP
instance=Kdc
max.ticket.lifetime=86400000
max.renewable.lifetime=604800000
debug=false
"""


class Kdc:
    """A running server of the realm EXAMPLE.COM."""

    realm = "EXAMPLE.COM"

    def __init__(self, folder: Path, *principals: str) -> None:
        """Start the server.

        Args:
            folder: for its files.
            principals: of users and services, as "client" and "kafka/localhost".

        Raises:
            ToolMissingError: there is no Java, or no Maven to fetch the server with.
            RealKafkaError: the server cannot be fetched or started.
        """
        class_path = jars(ARTIFACT)
        java = find_tool("java")
        self.keytab = folder / "keys.keytab"
        """The keys of all principals."""
        self.krb5_conf = folder / "krb5-client.conf"
        """What KRB5_CONFIG must name, in the client and in the service."""
        self._ports = PortPool()
        port = self._ports.take_port()
        self.krb5_conf.write_text(KRB5_CONF.format(realm=self.realm, port=port))
        (folder / "kdc.properties").write_text(PROPERTIES.format(port=port))
        self._reaper = Reaper(None)
        main = [java, "-Xmx64m", "-cp", f"{class_path}/*", "org.apache.hadoop.minikdc.MiniKdc"]
        self.process = JavaProcess(
            "the Kerberos server",
            [*main, str(folder), "kdc.properties", str(self.keytab), *principals],
            cwd=folder,
            log_path=folder / "kdc.log",
            ready="Do <CTRL-C>",
            reaper=self._reaper,
        )
        try:
            self.process.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the server."""
        self.process.kill()
        self._reaper.close()
        self._ports.close()

    def __enter__(self) -> Kdc:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
