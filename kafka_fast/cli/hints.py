"""What users of Kafka's scripts and of kcat type, and which command of ours does the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kafka_fast.cli.kcat import MODES, command_of, is_kcat, kcat_options

_OF_OTHER_GROUPS: Mapping[str, str] = {
    "--list": "groups list",
    "--describe": "groups describe",
    "--delete": "groups delete",
    "": "groups --help",
}

SCRIPTS: Mapping[str, Mapping[str, str]] = {
    "kafka-topics": {
        "--list": "topics list",
        "--describe": "topics describe",
        "--create": "topics create",
        "--delete": "topics delete",
        "--partitions": "topics partitions",
        "--alter": "topics alter",
        "": "topics --help",
    },
    "kafka-configs": {
        "--alter": "configs alter",
        "--describe": "configs describe",
        "": "configs --help",
    },
    "kafka-transactions": {
        "list": "txn list",
        "describe": "txn describe",
        "find-hanging": "txn hanging",
        "abort": "txn abort",
        "": "txn --help",
    },
    "kafka-get-offsets": {"": "topics offsets"},
    "kafka-console-consumer": {"": "consume"},
    "kafka-console-producer": {"": "produce"},
    "kafka-delete-records": {"": "records delete"},
    "kafka-consumer-groups": {
        "--list": "groups list",
        "--members": "groups members",
        "--state": "groups describe",
        "--describe": "groups lag",
        "--reset-offsets": "groups reset",
        "--delete-offsets": "groups delete-offsets",
        "--delete": "groups delete",
        "": "groups --help",
    },
    "kafka-groups": {"": "groups list"},
    "kafka-share-groups": _OF_OTHER_GROUPS,
    "kafka-streams-groups": _OF_OTHER_GROUPS,
    "kafka-acls": {
        "--list": "acls list",
        "--add": "acls create",
        "--remove": "acls delete",
        "": "acls --help",
    },
    "kafka-leader-election": {"": "elect"},
    "kafka-reassign-partitions": {
        "--generate": "reassign plan",
        "--execute": "reassign run",
        "--verify": "reassign status",
        "--list": "reassign status",
        "--cancel": "reassign cancel",
        "": "reassign --help",
    },
    "kafka-log-dirs": {"": "cluster log-dirs"},
    "kafka-metadata-quorum": {
        "add-controller": "cluster add-voter",
        "remove-controller": "cluster remove-voter",
        "": "cluster quorum",
    },
    "kafka-features": {
        "upgrade": "cluster upgrade",
        "downgrade": "cluster downgrade",
        "disable": "cluster disable",
        "": "cluster features",
    },
    "kafka-cluster": {"unregister": "cluster unregister-broker", "": "cluster"},
    "kafka-delegation-tokens": {
        "--create": "tokens create",
        "--renew": "tokens renew",
        "--expire": "tokens expire",
        "--describe": "tokens list",
        "": "tokens --help",
    },
    "kafka-broker-api-versions": {"": "check"},
    "kafka-client-metrics": {
        "--alter": "configs alter client-metrics",
        "--delete": "configs alter client-metrics",
        "": "configs describe client-metrics",
    },
    "kcat": {**MODES, "": "--help"},
}
"""Script -> option that says what it does -> command; "": if there is none of these options.

Of several options that are given the first one here counts.
"""

_SAME_AS = {"kafkacat": "kcat"}

_OF_ACLS = {"--topic": "--topic ", "--group": "--group "}
_OF_PLANS = {"--reassignment-json-file": ""}

_NAMES: Mapping[str, Mapping[str, str]] = {
    **{f"groups {verb}": {"--group": ""} for verb in ("lag", "members", "describe", "delete")},
    **{
        f"configs {verb}": {
            "--entity-type": "",
            "--entity-name": "",
            **{
                f"--{kind}": f"{kind} "
                for kind in ("topic", "broker", "broker-logger", "group", "client-metrics")
            },
        }
        for verb in ("describe", "alter")
    },
    "txn describe": {"--transactional-id": ""},
    "txn hanging": {
        "--topic": "--topic ",
        "--partition": "--partition ",
        "--broker-id": "--broker ",
    },
    "txn abort": {
        "--topic": "",
        "--partition": "",
        "--start-offset": "--start-offset ",
        "--producer-id": "--producer-id ",
    },
    "groups delete-offsets": {"--group": "", "--topic": "--topic "},
    "groups reset": {"--group": "", "--topic": "--topic ", "--from-file": "--plan "},
    "consume": {"--topic": "", "-t": "", "--group": "-g "},
    "elect": {"--topic": "--topic "},
    "reassign run": _OF_PLANS,
    "reassign status": _OF_PLANS,
    "reassign cancel": _OF_PLANS,
    "cluster": {},
    "cluster log-dirs": {},
    "cluster quorum": {},
    "cluster features": {},
    **{f"cluster {verb}": {"--feature": ""} for verb in ("upgrade", "downgrade", "disable")},
    "cluster add-voter": {},
    "cluster remove-voter": {"--controller-id": "", "--controller-directory-id": "--directory "},
    "cluster unregister-broker": {"--id": "", "-i": ""},
    **{f"configs {verb} client-metrics": {"--name": ""} for verb in ("describe", "alter")},
    "acls list": _OF_ACLS,
    "acls create": _OF_ACLS,
    "acls delete": _OF_ACLS,
    "": {"--topic": "", "-t": ""},
}
"""Command -> option whose value it takes, too -> what stands before the value there."""

_SERVERS = {
    "--bootstrap-server": "-b ",
    "-b": "-b ",
    "--bootstrap-controller": "-X bootstrap.controllers=",
}

_PLAIN = re.compile(r"[\w.,:\-\[\]=]+")
"""What needs no quotes, and so can be shown as it is."""


def hint(argv: Sequence[str]) -> str | None:
    """Return which command to use in place of another tool's; None: this is none.

    Args:
        argv: the arguments of `kafka-fast`, which may begin with the name of a script, or with
            an option of kcat.
    """
    if not argv:
        return None
    script = argv[0].rpartition("/")[2].removesuffix(".sh").removesuffix(".bat")
    script, options = _SAME_AS.get(script, script), argv[1:]
    if script == "kcat":
        command = command_of(options) or "--help"
        return f"{argv[0]} is another tool: use kafka-fast {command}"
    if is_kcat(argv):
        command = command_of(argv) or "consume --help"
        return f"kcat {argv[0]} is another tool: use kafka-fast {command}"
    if script in ("consume", "produce"):
        names, ours = kcat_options(script, options)
        if names:
            use = f": use {' '.join(ours)}" if ours else f", see kafka-fast {script} --help"
            return f"{', '.join(names)} of kcat is not known here{use}"
        return None
    if script not in SCRIPTS:
        return None
    commands = SCRIPTS[script]
    command = next((commands[option] for option in commands if option in options), commands[""])
    return f"{argv[0]} is another tool: use kafka-fast {command}{_arguments(command, options)}"


def _arguments(command: str, options: Sequence[str]) -> str:
    """Return the names that the command takes, too."""
    if command.endswith("--help"):
        return ""
    names = {**_NAMES.get(command, _NAMES[""]), **_SERVERS}
    pairs = (option.split("=", 1) if "=" in option else (option, "") for option in options)
    shown = ""
    for (option, value), after in zip(pairs, [*options[1:], ""], strict=True):
        text = value or after
        if option in names and _PLAIN.fullmatch(text) and not text.startswith("-"):
            shown += f" {names[option]}{text}"
    return shown
