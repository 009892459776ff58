"""The options `--tls`, `--username` and their like: short names of a few properties.

There is no option for a password: arguments can be seen by every user of the machine (`ps`), and
shells keep them in their histories.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys

from kafka_fast.config import own_key
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

PASSWORD_VARIABLE = "KAFKA_FAST_PASSWORD"

_PROTOCOL = "security.protocol"

_PROPERTIES = {
    "ca": "ssl.truststore.location",
    "cert": "ssl.keystore.location",
    "key": "ssl.key.location",
    "sasl_mechanism": "sasl.mechanism",
    "username": "sasl.username",
}
"""Destination of an option -> property."""

_OF_TLS = ("ca", "cert", "key")


class _Refused(argparse.Action):
    """An option that is there to be refused, before it is taken for an abbreviation."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        """Exit, and do not repeat what was given."""
        parser.error(
            f"{self.option_strings[0]} would show it to every user of this machine: give "
            f"--password-file, or set {PASSWORD_VARIABLE}"
        )


def canonical(name: str) -> str:
    """Return the table's name of a property; a name that means nothing as it is."""
    key = own_key(name)
    return name if key is None else key.name


def add_secure_connection(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    group = parser.add_argument_group("secure connections")
    group.add_argument("--tls", action="store_true", help="encrypt connections; --ca implies it")
    group.add_argument("--ca", metavar="FILE", help="CA certificates to trust (PEM)")
    group.add_argument("--cert", metavar="FILE", help="certificate of this client (PEM)")
    group.add_argument("--key", metavar="FILE", help="private key of --cert, if it is not there")
    group.add_argument(
        "--sasl-mechanism",
        metavar="NAME",
        help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI or AWS_MSK_IAM",
    )
    group.add_argument(
        "--username",
        metavar="NAME",
        help=f"user; the password is asked for, unless --password-file or {PASSWORD_VARIABLE} has "
        "it",
    )
    group.add_argument(
        "--password-file", metavar="FILE", help="file whose first line is the password"
    )
    group.add_argument("--password", nargs="?", action=_Refused, help=argparse.SUPPRESS)


def secured(args: argparse.Namespace, config: dict[str, object]) -> dict[str, object]:
    """Return the configuration with what the options say.

    Raises:
        ConfigError: an option and `-X` differ; or a password is missing, and nobody can be asked.
        OSError: the file with the password cannot be read.
    """
    options = {
        name: value
        for option, name in _PROPERTIES.items()
        if (value := getattr(args, option)) is not None
    }
    of_x = {canonical(name): value for name, value in args.properties}
    for name, value in options.items():
        if of_x.get(name, value) != value:
            raise ConfigError(f"{name} is given twice: by an option and by -X")
    properties = {key: config[key] for key in config if canonical(key) not in options}
    properties.update(options)
    _set_protocol(args, properties)
    _set_password(args, properties)
    return properties


def _set_protocol(args: argparse.Namespace, config: dict[str, object]) -> None:
    """Add TLS and SASL to the protocol that is given otherwise, where options ask for them."""
    protocols = [config.pop(key) for key in list(config) if canonical(key) == _PROTOCOL]
    protocol = str(protocols[-1]).strip().upper() if protocols else "PLAINTEXT"
    has_tls = args.tls or any(getattr(args, option) is not None for option in _OF_TLS)
    has_sasl = args.sasl_mechanism is not None or args.username is not None
    if has_tls:
        protocol = protocol.replace("PLAINTEXT", "SSL")
    if has_sasl and not protocol.startswith("SASL_"):
        protocol = f"SASL_{protocol}"
    if protocols or has_tls or has_sasl:
        config[_PROTOCOL] = protocol


def _set_password(args: argparse.Namespace, config: dict[str, object]) -> None:
    """Find the password of a user who has none in the properties."""
    names = {canonical(key): key for key in config}
    if args.password_file is not None:
        from pathlib import Path  # takes 3 ms, which every command would wait for

        config.pop(names.get("sasl.password", ""), None)
        first, *_ = Path(args.password_file).read_text(encoding="utf-8").split("\n", 1)
        config["sasl.password"] = Secret(first.removesuffix("\r"))
    elif "sasl.username" in names and "sasl.password" not in names:
        config["sasl.password"] = _password_of(str(config[names["sasl.username"]]))


def _password_of(user: str) -> Secret:
    """Return the password from the environment, or ask for it on the terminal."""
    password = os.environ.get(PASSWORD_VARIABLE)
    if password is not None:
        return Secret(password)
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(
            f"the password of {user} is missing: give --password-file FILE, or set the "
            f"environment variable {PASSWORD_VARIABLE}"
        )
    return Secret(getpass.getpass(f"password of {user}: "))
