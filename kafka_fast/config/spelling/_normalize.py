"""One normaliser for all spellings: dotted, snake_case, any case, and other clients' names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from kafka_fast.config._admin import ADMIN_ONLY
from kafka_fast.config._common import COMMON
from kafka_fast.config._consumer import CONSUMER_ONLY
from kafka_fast.config._given import Properties, check_first_argument
from kafka_fast.config._key import EVERY_CLIENT, PRODUCER, Key, ValueKind
from kafka_fast.config._producer import PRODUCER_ONLY
from kafka_fast.config._values import NO_SECRET, coerce
from kafka_fast.config.security._security import SECURITY
from kafka_fast.errors import ConfigError
from kafka_fast.logs import get_logger
from kafka_fast.secret import Secret

KEYS: Mapping[str, Key] = MappingProxyType(
    {key.name: key for key in (*COMMON, *PRODUCER_ONLY, *CONSUMER_ONLY, *ADMIN_ONLY, *SECURITY)}
)
"""The table: canonical name -> key."""

_log = get_logger("kafka_fast.config")

_CODEC_LEVEL = "compression.level"


class Config(Mapping[str, Any]):
    """A client's whole configuration: canonical name -> value, defaults filled in.

    Immutable. Picklable as far as the user's objects in it are, and not if there are secrets in it.
    """

    __slots__ = ("_values", "client", "explicit")

    client: str
    """Which client it is for."""
    explicit: frozenset[str]
    """Canonical names of what the user gave."""
    _values: Mapping[str, Any]

    def __init__(self, client: str, given: Mapping[str, object]) -> None:
        """Fill in the defaults that `given`, which holds checked values, leaves open."""
        values = {
            key.name: given.get(key.name, key.default_of(client))
            for key in KEYS.values()
            if client in key.clients
        }
        object.__setattr__(self, "client", client)
        object.__setattr__(self, "explicit", frozenset(given))
        object.__setattr__(self, "_values", values)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a configuration is immutable."""
        raise AttributeError(f"Config is immutable: cannot set {name!r}")

    def __getitem__(self, name: str) -> Any:
        """Return the value of the property with that canonical name."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the canonical names, in the order of the reference page."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of properties that the client has."""
        return len(self._values)

    def __reduce__(self) -> tuple[type[Config], tuple[str, dict[str, object]]]:
        """Pickle what was given; the defaults are the reader's.

        Raises:
            TypeError: a secret was given.
        """
        secrets = [name for name in sorted(self.explicit) if isinstance(self[name], Secret)]
        if secrets:
            raise TypeError(
                f"a configuration with {', '.join(secrets)} is not pickled: make it where it is "
                "needed, from your own mapping"
            )
        return Config, (self.client, {name: self._values[name] for name in self.explicit})

    def __repr__(self) -> str:
        """Show what the user gave, without secrets."""
        text = ", ".join(f"{name}={self[name]!r}" for name in sorted(self.explicit))
        return f"Config({self.client}: {text})"


def normalize(
    mapping: Mapping[str, object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    *,
    client: str = PRODUCER,
) -> Config:
    """Return the configuration that a client's constructor was given.

    Args:
        mapping: the constructor's dictionary, in any spelling.
        kwargs: its keyword arguments.
        client: `producer`, `consumer` or `admin`.

    Raises:
        ConfigError: unknown key, wrong type, out of range, not supported yet, or one property
            given twice with different values.
        TypeError: the dictionary is something else.
    """
    try:
        if client not in EVERY_CLIENT:
            raise ValueError(f"client must be one of {', '.join(EVERY_CLIENT)}, not {client!r}")
        check_first_argument(mapping, client)
        items = _concealed(_of_client(mapping or {}, client), kwargs or {})
    finally:
        del mapping, kwargs  # an error's traceback has this frame: no secret may be in it
    values: dict[str, object] = {}
    spelled: dict[str, str] = {}
    levels: list[tuple[str, object]] = []
    for name, value in _with_meaning(items, client):
        if dotted(name) == _CODEC_LEVEL:
            levels.append((name, value))
            continue
        key, scale = _find(name, client)
        _put(values, spelled, key, name, coerce(key, name, value, scale))
    for name, value in levels:
        _put_codec_level(values, spelled, name, value)
    _log_ignored(values)
    return Config(client, values)


def _with_meaning(items: Iterable[tuple[str, object]], client: str) -> Iterator[tuple[str, object]]:
    """Yield the properties that mean something to a client, or are refused.

    The others are logged: those of other kinds of clients, whose mapping this one shares, and
    harmless ones of other libraries.
    """
    quiet: list[str] = []
    for name, value in items:
        key = own_key(name)
        if (key is not None and client in key.clients) or (
            dotted(name) == _CODEC_LEVEL and client == PRODUCER
        ):
            yield name, value
            continue
        if key is not None:
            quiet.append(name)
            continue
        from kafka_fast.config.spelling._foreign import Acceptance, advice_for

        advice = advice_for(dotted(name), client)
        match Acceptance.NEVER if advice is None else advice.taken_with(value):
            case Acceptance.NEVER:
                yield name, value
            case Acceptance.QUIETLY:
                quiet.append(name)
            case Acceptance.ALOUD:
                assert advice is not None
                _log.warning("%s has no effect on this %s: %s", name, client, advice.text)
    if quiet:
        _log.debug("without meaning for a %s: %s", client, ", ".join(quiet))


def peek(name: str, *sources: object) -> str:
    """Return a property as a client's constructor was given it; "" if it was not, or is no string.

    For the name of the client in the log, before anything is checked.
    """
    for source in sources:
        for spelled, value in source.items() if isinstance(source, Mapping) else ():
            if isinstance(spelled, str) and dotted(spelled) == name and isinstance(value, str):
                return value
    return ""


def conceal(mapping: Mapping[str, object], client: str) -> dict[str, object]:
    """Return the properties in which secrets hide themselves; the client takes them as they are.

    Of a file's properties, those are left out that only other kinds of client have.
    """
    return dict(_concealed(_of_client(mapping, client)))


def find_key(name: str, client: str = PRODUCER) -> Key:
    """Return the property that a name means, in any spelling and any client's terms.

    Raises:
        ConfigError: there is none, or that client does not have it.
    """
    return _find(name, client)[0]


def dotted(name: str) -> str:
    """Return a property's name as the table has it: lower case, dots for underscores."""
    if not isinstance(name, str):
        raise ConfigError(f"the name of a property must be a string, not {name!r}")
    return name.strip().lower().replace("_", ".")


def _of_client(mapping: Mapping[str, object], client: str) -> Mapping[str, object]:
    """Return a file's properties without other clients'; any other mapping as it is."""
    if not isinstance(mapping, Properties):
        return mapping
    others = [name for name in mapping if (key := own_key(name)) and client not in key.clients]
    if others:
        _log.info("without meaning for a %s: %s", client, ", ".join(others))
    return {name: value for name, value in mapping.items() if name not in others}


def own_key(name: str) -> Key | None:
    """Return the property that a name means; None: it means nothing here, or is only refused."""
    dotted_name = dotted(name)
    return KEYS.get(dotted_name) or _aliases().get(dotted_name, (None, 1))[0]


def knows(name: str) -> bool:
    """Return whether a name means something to some client, or is refused with advice."""
    from kafka_fast.config.spelling._foreign import advice_for

    return (
        own_key(name) is not None
        or dotted(name) == _CODEC_LEVEL
        or any(advice_for(dotted(name), client) for client in EVERY_CLIENT)
    )


def nearest(name: str) -> str | None:
    """Return the property, of any client, that an unknown name was most likely meant for."""
    return _nearest(dotted(name), EVERY_CLIENT, 0.8)


def _concealed(*sources: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return all properties, with those hidden that may be secrets: of unknown names as well."""
    return [(name, _hidden(name, value)) for source in sources for name, value in source.items()]


def _hidden(name: object, value: object) -> object:
    if value is None or isinstance(value, Secret):
        return value
    if isinstance(name, str):
        key = own_key(name)
        is_open = _is_harmless(name) if key is None else key.kind is not ValueKind.PASSWORD
        if dotted(name) == _CODEC_LEVEL or (is_open and not isinstance(value, Mapping | bytes)):
            return value
    return Secret(value) if isinstance(value, str) or callable(value) else NO_SECRET


def _is_harmless(name: str) -> bool:
    """Return whether this is a property of another client's whose values are no secrets."""
    from kafka_fast.config.spelling._foreign import advice_for

    advice = (advice_for(dotted(name), client) for client in EVERY_CLIENT)
    return any(one is not None and one.is_open for one in advice)


def _put(
    values: dict[str, object], spelled: dict[str, str], key: Key, name: str, value: object
) -> None:
    if key.name in values and not _is_same(values[key.name], value):
        raise ConfigError(
            f"{key.name} is given twice with different values: "
            f"{spelled[key.name]}={values[key.name]!r}, {name}={value!r}"
        )
    values[key.name] = value
    spelled.setdefault(key.name, name)


def _is_same(first: object, second: object) -> bool:
    if isinstance(first, Secret) and isinstance(second, Secret):
        return first.is_same(second)
    return first == second


def _log_ignored(names: Iterable[str]) -> None:
    for name in names:
        if KEYS[name].ignored:
            _log.info("%s is accepted and means nothing here: %s", name, KEYS[name].ignored)


def _put_codec_level(
    values: dict[str, object], spelled: dict[str, str], name: str, value: object
) -> None:
    """Give librdkafka's one `compression.level` to the codec that is chosen.

    Its -1 means the codec's default; a codec without levels ignores it, as librdkafka does.
    """
    key = KEYS.get(f"compression.{values.get('compression.type', 'none')}.level")
    if key is not None and str(value).strip() != "-1":
        _put(values, spelled, key, name, coerce(key, name, value))


def _find(name: str, client: str) -> tuple[Key, int]:
    """Return the key that a user's spelling means, and the scale of that spelling."""
    dotted_name = dotted(name)
    key, scale = KEYS.get(dotted_name), 1
    if key is None:
        key, scale = _aliases().get(dotted_name, (None, 1))
    if key is not None and client in key.clients:
        return key, scale
    from kafka_fast.config.spelling._foreign import advice_for, refusal  # only for errors

    advice = advice_for(dotted_name, client)
    if advice is not None:
        raise ConfigError(refusal(name, advice))
    if key is None:
        raise ConfigError(f"unknown property {name!r}{_suggestion(dotted_name, client)}")
    others = " and ".join(key.clients)
    raise ConfigError(f"{name}: a property of the {others}, not of the {client}")


@cache
def _aliases() -> Mapping[str, tuple[Key, int]]:
    return {
        dotted(alias.name): (key, alias.scale)
        for key in KEYS.values()
        for alias in key.aliases
        if alias.name != _CODEC_LEVEL
    }


def _suggestion(name: str, client: str) -> str:
    near = _nearest(name, [client], 0.6)
    return f"; did you mean {near!r}?" if near else ""


def _nearest(name: str, clients: Iterable[str], cutoff: float) -> str | None:
    """Return the name of a property that one of the clients has, and that is most like `name`."""
    chosen = set(clients)
    names = [key.name for key in KEYS.values() if chosen & set(key.clients)]
    names += [alias for alias, (key, _) in _aliases().items() if chosen & set(key.clients)]
    import difflib  # errors, and files with other programs' properties

    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    return near[0] if near else None
