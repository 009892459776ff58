"""Properties of TLS: those of Java, of librdkafka and of kafka-python, for one object of settings.

All of them end in `TlsSettings`; `_resolve_tls` says how.
"""

from __future__ import annotations

from kafka_fast.config._key import Key, ValueKind, confluent, kafka_python

FIELD = "tls"
JVM_CLASS = "a class of the JVM: ssl_context= takes an ssl.SSLContext of Python's"

_STORE_TYPES = ("PEM", "PKCS12", "JKS")

TLS: tuple[Key, ...] = (
    Key(
        name="ssl.truststore.location",
        kind=ValueKind.STRING,
        default=None,
        field=FIELD,
        words={"probe": None},  # librdkafka's word for the system's certificates
        aliases=(*confluent("ssl.ca.location"), *kafka_python("ssl.cafile")),
        doc="File with the CA certificates that are trusted: PEM, PKCS12 or JKS. Without this and "
        "`ssl.truststore.certificates`: the system's, as OpenSSL and `SSL_CERT_FILE` say.",
    ),
    Key(
        name="ssl.truststore.certificates",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        aliases=confluent("ssl.ca.pem"),
        doc="The CA certificates that are trusted, as a text in PEM.",
    ),
    Key(
        name="ssl.truststore.password",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        doc="Password of a PKCS12 or JKS file in `ssl.truststore.location`.",
    ),
    Key(
        name="ssl.truststore.type",
        kind=ValueKind.STRING,
        default="JKS",
        choices=_STORE_TYPES,
        field=FIELD,
        doc="Checked beside texts in PEM only. The content of a file, `ssl.truststore.location`, "
        "tells its type, whatever is said here: Java, too, opens PKCS12 as JKS.",
    ),
    Key(
        name="ssl.keystore.location",
        kind=ValueKind.STRING,
        default=None,
        field=FIELD,
        aliases=(*confluent("ssl.certificate.location"), *kafka_python("ssl.certfile")),
        doc="File with this client's certificate chain: PEM, PKCS12 or JKS. It also holds the "
        "private key, unless `ssl.key.location` does.",
    ),
    Key(
        name="ssl.key.location",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        aliases=kafka_python("ssl.keyfile"),
        doc="File with this client's private key in PEM, if `ssl.keystore.location` does not hold "
        "it.",
    ),
    Key(
        name="ssl.keystore.password",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        doc="Password of a PKCS12 or JKS file in `ssl.keystore.location`.",
    ),
    Key(
        name="ssl.keystore.type",
        kind=ValueKind.STRING,
        default="JKS",
        choices=_STORE_TYPES,
        field=FIELD,
        doc="Checked beside texts in PEM only. The content of a file, `ssl.keystore.location`, "
        "tells its type, whatever is said here: Java, too, opens PKCS12 as JKS.",
    ),
    Key(
        name="ssl.keystore.key",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        aliases=confluent("ssl.key.pem"),
        doc="This client's private key, as a text in PEM.",
    ),
    Key(
        name="ssl.keystore.certificate.chain",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        aliases=confluent("ssl.certificate.pem"),
        doc="This client's certificate chain, as a text in PEM, its own certificate first.",
    ),
    Key(
        name="ssl.key.password",
        kind=ValueKind.PASSWORD,
        default=None,
        field=FIELD,
        aliases=kafka_python("ssl.password"),
        doc="Password of the private key, if it is encrypted.",
    ),
    Key(
        name="ssl.crl.location",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        aliases=kafka_python("ssl.crlfile"),
        doc="PEM file with certificate revocation lists; none: nothing is checked for revocation.",
    ),
    Key(
        name="ssl.enabled.protocols",
        kind=ValueKind.LIST,
        default=("TLSv1.2", "TLSv1.3"),
        choices=("TLSv1.2", "TLSv1.3"),
        field=FIELD,
        doc="Versions of TLS that may be negotiated. Older ones are not safe.",
    ),
    Key(
        name="ssl.protocol",
        kind=ValueKind.STRING,
        default="TLSv1.3",
        choices=("TLSv1.2", "TLSv1.3"),
        words={"tls": "TLSv1.3"},
        field=FIELD,
        doc="With `TLSv1.2`, TLS 1.3 is not used, even if `ssl.enabled.protocols` has it.",
    ),
    Key(
        name="ssl.cipher.suites",
        kind=ValueKind.LIST,
        default=(),
        field=FIELD,
        aliases=kafka_python("ssl.ciphers"),
        doc="Cipher suites that may be negotiated, by Java's (IANA's) or OpenSSL's names, or as a "
        "cipher string of OpenSSL's. Empty: OpenSSL's choice.",
    ),
    Key(
        name="ssl.endpoint.identification.algorithm",
        kind=ValueKind.STRING,
        default="https",
        choices=("https", ""),
        words={"none": "", "true": "https", "false": ""},
        field=FIELD,
        aliases=kafka_python("ssl.check.hostname"),
        doc="With `https`, a broker's certificate must name the host that the client connects to. "
        "Empty (or `none`): any trusted certificate will do, which lets its owner pose as a "
        "broker; a warning is logged.",
    ),
    Key(
        name="enable.ssl.certificate.verification",
        kind=ValueKind.BOOLEAN,
        default=True,
        own=True,
        field=FIELD,
        doc="With false, every certificate of a broker is accepted: whoever is between can read "
        "and change everything. For experiments only; a warning is logged.",
    ),
    Key(
        name="ssl.context",
        kind=ValueKind.CONTEXT,
        default=None,
        own=True,
        field=FIELD,
        doc="An `ssl.SSLContext` of yours, used to the letter instead of all other properties of "
        "TLS. Slower: Python's ssl then encrypts, in a thread of its own.",
    ),
    Key(
        name="ssl.keylog.location",
        kind=ValueKind.STRING,
        default=None,
        own=True,
        field=FIELD,
        doc="File to which the keys of each connection are appended, for a packet analyser. "
        "Whoever reads it can decrypt the traffic.",
    ),
    Key(
        name="ssl.engine.factory.class",
        kind=ValueKind.STRING,
        default=None,
        refused=JVM_CLASS,
        doc="Maker of the JVM's TLS engines.",
    ),
    Key(
        name="ssl.provider",
        kind=ValueKind.STRING,
        default=None,
        ignored="OpenSSL is the provider",
        doc="Security provider of the JVM.",
    ),
    Key(
        name="ssl.keymanager.algorithm",
        kind=ValueKind.STRING,
        default=None,
        ignored="there is only one here",
        doc="Key manager of the JVM.",
    ),
    Key(
        name="ssl.trustmanager.algorithm",
        kind=ValueKind.STRING,
        default=None,
        ignored="there is only one here",
        doc="Trust manager of the JVM.",
    ),
    Key(
        name="ssl.secure.random.implementation",
        kind=ValueKind.STRING,
        default=None,
        ignored="OpenSSL has its own",
        doc="Random number generator of the JVM.",
    ),
    Key(
        name="security.providers",
        kind=ValueKind.STRING,
        default=None,
        ignored="OpenSSL is the provider",
        doc="Security providers of the JVM.",
    ),
)
