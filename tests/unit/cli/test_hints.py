"""What is said to those who type another tool's command."""

from __future__ import annotations

import pytest

from kafka_fast.cli.commands import parse
from kafka_fast.cli.hints import SCRIPTS, hint
from kafka_fast.cli.main import main


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
        ("kcat -C -t $(rm)", "consume"),
        ("kcat -C -t", "consume"),
    ],
)
def test_another_tool(words: str, ours: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.endswith(f": use kafka-fast {ours}\n")


@pytest.mark.parametrize("words", [[], ["topics"], ["-v", "topics"], ["consume", "kcat"], [""]])
def test_our_own(words: list[str]) -> None:
    assert hint(words) is None


def test_every_hint_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for commands in SCRIPTS.values():
        for command in commands.values():
            with pytest.raises(SystemExit) as caught:
                parse([*command.split(), "--help"])
            assert caught.value.code == 0
    assert "usage" in capsys.readouterr().out
