"""What is said to those who type another tool's command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch

import pytest

from kafka_fast.cli.commands import COMMANDS, parse
from kafka_fast.cli.hints import SCRIPTS, hint
from kafka_fast.cli.main import main
from tests.documentation.pages import ROOT


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("kafka-topics --list", "topics list"),
        ("kafka-topics.sh --describe --topic a", "topics describe a"),
        ("/opt/kafka/bin/kafka-topics.sh --create --topic=a", "topics create a"),
        ("kafka-topics --bootstrap-server b:1 --delete --topic a", "topics delete -b b:1 a"),
        ("kafka-topics --alter --topic a --partitions 3", "topics partitions a"),
        ("kafka-topics --alter --topic a", "topics alter a"),
        ("kafka-topics --create --topic a --partitions 3", "topics create a"),
        ("kafka-topics", "topics --help"),
        (
            "kafka-configs --describe --entity-type topics --entity-name a",
            "configs describe topics a",
        ),
        ("kafka-configs --alter --broker 1 --add-config k=v", "configs alter broker 1"),
        ("kafka-transactions list", "txn list"),
        ("kafka-transactions describe --transactional-id a", "txn describe a"),
        ("kafka-transactions find-hanging --broker-id 1", "txn hanging --broker 1"),
        (
            "kafka-transactions abort --topic a --partition 0 --start-offset 9",
            "txn abort a 0 --start-offset 9",
        ),
        ("kafka-transactions", "txn --help"),
        ("kafka-configs.sh", "configs --help"),
        ("kafka-get-offsets --topic a --time -2", "topics offsets a"),
        ("kafka-console-consumer --topic a --group g", "consume a -g g"),
        ("kafka-console-producer --topic a", "produce a"),
        ("kafka-consumer-groups --list", "groups list"),
        ("kafka-consumer-groups --describe --group g --topic a", "groups lag g"),
        ("kafka-consumer-groups --describe --members --group g", "groups members g"),
        (
            "kafka-consumer-groups --group g --topic a --reset-offsets --to-earliest",
            "groups reset g --topic a",
        ),
        ("kafka-consumer-groups --delete --group g", "groups delete g"),
        ("kafka-consumer-groups --describe --all-groups", "groups lag"),
        (
            "kafka-consumer-groups --delete-offsets --group g --topic a",
            "groups delete-offsets g --topic a",
        ),
        (
            "kafka-consumer-groups --group g --reset-offsets --from-file f.csv",
            "groups reset g --plan f.csv",
        ),
        ("kafka-share-groups --describe --group g", "groups describe g"),
        ("kafka-delete-records --offset-json-file f", "records delete"),
        ("kafka-acls --list --topic a", "acls list --topic a"),
        ("kafka-acls.sh --add --group g --cluster", "acls create --group g"),
        ("kafka-delegation-tokens.sh --renew --hmac x", "tokens renew"),
        ("kafka-leader-election --election-type preferred --topic a", "elect --topic a"),
        (
            "kafka-reassign-partitions --execute --reassignment-json-file p.json",
            "reassign run p.json",
        ),
        ("kafka-reassign-partitions.sh --list --bootstrap-server b:1", "reassign status -b b:1"),
        ("kafka-log-dirs.sh --describe --bootstrap-server b:1", "cluster log-dirs -b b:1"),
        ("kafka-metadata-quorum.sh --bootstrap-server b:1 describe", "cluster quorum -b b:1"),
        ("kafka-features describe", "cluster features"),
        ("kafka-cluster cluster-id --bootstrap-server b:1", "cluster -b b:1"),
        ("kcat -C -b b:1 -t a", "consume -b b:1 a"),
        ("kafkacat -P -t a", "produce a"),
        ("-L -b b:1", "topics describe -b b:1"),
        ("-C -t a", "consume a"),
        ("kcat -t $(rm)", "--help"),
        ("kcat", "--help"),
        ("-t a", "consume --help"),
        (
            "kcat -b b:1 -t a -o beginning -e -c 3",
            "consume -b b:1 --from beginning --until end -n 3 a",
        ),
        ("kcat -C -t a -o -5 -e", "consume --tail 5 a"),
        ("kcat -C -t a -o-5", "consume --tail 5 a"),
        ("-C -ta -p0 -o s@1000 -o e@2000 -q", "consume -p 0 --from @1000 --until @2000 a"),
        ("kcat -Ce -t a -o stored -J", "consume --until end --group GROUP -F json a"),
        (
            "kcat -C -t a -o end -s value=q -s key=s",
            "consume --from end --value-as long --key-as string a",
        ),
        (
            "kcat -C -t a -s i -s avro -o x",
            "consume --key-as integer --value-as integer --from POINT a",
        ),
        (r"kcat -C -t a -f %k:%s\n", r"consume -F '%k:%v\n' a"),
        ("kcat -C -t a -K : -F f.properties", r"consume -F '%k:%v\n' --config f.properties a"),
        ("kcat -C -t a -D ;", "consume -F '%v;' a"),
        ("kcat -G g a b", "consume -g g a b"),
        (
            "kcat -P -t a -K : -Z -z gzip -H k=v",
            "produce -K : --null '' -X compression.type=gzip -H k=v a",
        ),
        ("kcat -P -t a -l f -k x", "produce -f f a"),
        ("-L -t a -J", "topics describe -o json a"),
        ("kcat -Q -t a:1:1000", "topics offsets a --partition 1 --at @1000"),
        ("kafka-features upgrade --feature kraft.version=1", "cluster upgrade kraft.version=1"),
        ("kafka-features.sh disable --feature a", "cluster disable a"),
        (
            "kafka-metadata-quorum remove-controller --controller-id 4 --controller-directory-id d",
            "cluster remove-voter 4 --directory d",
        ),
        (
            "kafka-metadata-quorum --bootstrap-controller c:1 add-controller",
            "cluster add-voter -X bootstrap.controllers=c:1",
        ),
        ("kafka-cluster unregister --id 3", "cluster unregister-broker 3"),
        ("kafka-client-metrics --describe --name m", "configs describe client-metrics m"),
        ("kcat -C -t $(rm)", "consume"),
        ("kcat -C -t", "consume"),
    ],
)
def test_another_tool(words: str, ours: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.endswith(f": use kafka-fast {ours}\n")


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (
            "consume a -o beginning -e",
            "-o, -e of kcat is not known here: use --from beginning --until end",
        ),
        ("consume -t a", "-t of kcat is not known here: use a"),
        ("consume a -f %s", "-f of kcat is not known here: use -F %v"),
        ("consume a -u", "-u of kcat is not known here, see kafka-fast consume --help"),
        ("produce -P -t a", "-P, -t of kcat is not known here: use a"),
        ("produce a -Z", "-Z of kcat is not known here: use --null ''"),
    ],
)
def test_options_of_kcat_behind_our_commands(
    words: str, ours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"kafka-fast: {ours}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["produce", "a", "-f", "x", "-K", ":", "-H", "a=b", "-p", "1"],
        [
            "consume",
            "a",
            "-g",
            "b",
            "-p",
            "1",
            "-F",
            "json",
            "-n",
            "1",
            "-H",
            "a",
            "-b",
            "c",
            "-X",
            "d=e",
            "-vq",
        ],
        [],
        ["topics"],
        ["-v", "topics"],
        ["consume", "kcat"],
        [""],
    ],
)
def test_our_own(words: list[str]) -> None:
    assert hint(words) is None


def test_every_hint_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for commands in SCRIPTS.values():
        for command in commands.values():
            with pytest.raises(SystemExit) as caught:
                parse([*command.split(), "--help"])
            assert caught.value.code == 0
    assert "usage" in capsys.readouterr().out


SCRIPTS_OF_KAFKA = """
connect-distributed connect-mirror-maker connect-plugin-path connect-standalone kafka-acls
kafka-broker-api-versions kafka-client-metrics kafka-cluster kafka-configs kafka-console-consumer
kafka-console-producer kafka-console-share-consumer kafka-consumer-groups kafka-consumer-perf-test
kafka-delegation-tokens kafka-delete-records kafka-dump-log kafka-e2e-latency kafka-features
kafka-get-offsets kafka-groups kafka-jmx kafka-leader-election kafka-log-dirs kafka-metadata-quorum
kafka-metadata-shell kafka-producer-perf-test kafka-reassign-partitions kafka-replica-verification
kafka-run-class kafka-server-start kafka-server-stop kafka-share-consumer-perf-test
kafka-share-groups kafka-storage kafka-streams-application-reset kafka-streams-groups kafka-topics
kafka-transactions kafka-verifiable-consumer kafka-verifiable-producer
kafka-verifiable-share-consumer trogdor
"""
"""What is in bin/ of Kafka 4.4, without the `.sh`."""


def page_rows() -> Iterator[tuple[list[str], str]]:
    """Yield the rows of the page's table of scripts: names, which may be patterns, and the rest."""
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = text.partition("| script | here, or why not |\n|---|---|\n")[2].partition("\n\n")[0]
    for line in table.splitlines():
        _, names, ours, _ = line.split("|")
        yield re.findall("`([^`]+)`", names), ours.strip()


def test_the_page_has_every_script_once() -> None:
    patterns = [name for names, _ in page_rows() for name in names]
    scripts = SCRIPTS_OF_KAFKA.split()
    for script in scripts:
        assert [name for name in patterns if fnmatch(script, name)] != [], script
    for pattern in patterns:
        assert any(fnmatch(script, pattern) for script in scripts), pattern
    assert len(patterns) == len(set(patterns))


def test_the_page_names_commands_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """And each script with a command has a hint."""
    for names, ours in page_rows():
        if ours.startswith("no:"):
            continue
        assert all(name in SCRIPTS for name in names), names
        before: list[str] = []
        for text in re.findall("`([a-z -]+)`", ours):
            words = text.split()
            if words[0] not in COMMANDS:
                words = [*before[:1], *words]  # "`acls list`, `create`" is two verbs of one noun
            if words[0] in COMMANDS:
                before = words
                with pytest.raises(SystemExit) as caught:
                    parse([*words, "--help"])
                assert caught.value.code == 0, text
    assert "usage" in capsys.readouterr().out
