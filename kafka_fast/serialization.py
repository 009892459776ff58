"""Serializers and deserializers: between Python objects and the bytes of keys and values.

A serializer is an object with `serialize(topic, value, headers) -> bytes | None`, or any callable
`f(value) -> bytes | None`; a deserializer has `deserialize(topic, data, headers)` or is a callable
`f(data)`. `as_serializer` and `as_deserializer` bring both into the first form. The built-in
serializers write Java's formats, so that each side can read the other's records. None always stays
None: a missing key, or a tombstone.

An error of a built-in serializer says what was expected. The caller adds record, topic and
serializer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias, cast

from kafka_fast.errors import SerializationError
from kafka_fast.json_text import COMPACT, Read, Write, make_reader, make_writer
from kafka_fast.types import Headers
from kafka_fast.values import Value

_JAVA_PACKAGE = "org.apache.kafka.common.serialization."


class Serializer(Protocol):
    """Turns objects into bytes. Called in the thread that sends."""

    def serialize(self, topic: str, value: Any, headers: Headers | None) -> bytes | None:
        """Return the bytes of a key or a value."""
        ...


class Deserializer(Protocol):
    """Turns bytes into objects. Called in the thread that polls."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None) -> Any:
        """Return the object that a key's or a value's bytes stand for."""
        ...


SerializerLike: TypeAlias = Serializer | Callable[[Any], bytes | None] | str
"""A serializer in a configuration: an object, a callable, or the name of a built-in one."""

DeserializerLike: TypeAlias = Deserializer | Callable[[bytes], Any] | str
"""A deserializer in a configuration: an object, a callable, or the name of a built-in one."""


class StringSerializer(Value):
    """Encodes str."""

    encoding: str = "utf-8"

    def serialize(self, topic: str, value: str | None, headers: Headers | None) -> bytes | None:
        """Return `value` in the encoding."""
        if value is None:
            return None
        if not isinstance(value, str):
            raise _expected("a str", value)
        try:
            return value.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise SerializationError(str(error)) from error


class StringDeserializer(Value):
    """Decodes to str."""

    encoding: str = "utf-8"

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None) -> str | None:
        """Return the text that `data` encodes."""
        if data is None:
            return None
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise SerializationError(str(error)) from error


class BytesSerializer(Value):
    """Sends bytes-like objects unchanged."""

    def serialize(self, topic: str, value: Any, headers: Headers | None) -> bytes | None:
        """Return `value` as bytes."""
        if value is None or isinstance(value, bytes):
            return value
        if not isinstance(value, bytearray | memoryview):
            raise _expected("a bytes-like object", value)
        return bytes(value)


class BytesDeserializer(Value):
    """Returns bytes unchanged."""

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None) -> bytes | None:
        """Return `data`."""
        return data


class _Format(NamedTuple):
    """A number of fixed size, big endian."""

    name: str
    layout: struct.Struct
    accepts: type | tuple[type, ...]


_INT32: Final = _Format("int32", struct.Struct(">i"), int)
_INT64: Final = _Format("int64", struct.Struct(">q"), int)
_FLOAT64: Final = _Format("float64", struct.Struct(">d"), (int, float))


class _NumberSerializer(Value):
    """Base of the serializers of numbers; each subclass names its format."""

    _format: ClassVar[_Format]

    def serialize(self, topic: str, value: Any, headers: Headers | None) -> bytes | None:
        """Return `value` as Java's serializer of the same name writes it."""
        if value is None:
            return None
        name, layout, accepts = self._format
        if isinstance(value, bool) or not isinstance(value, accepts):
            raise _expected(f"a number for {name}", value)
        try:
            return layout.pack(value)
        except (struct.error, OverflowError) as error:
            raise SerializationError(f"{value!r} is out of range for {name}") from error


class _NumberDeserializer(Value):
    """Base of the deserializers of numbers; each subclass names its format."""

    _format: ClassVar[_Format]

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None) -> Any:
        """Return the number in `data`."""
        if data is None:
            return None
        name, layout, _ = self._format
        if len(data) != layout.size:
            raise SerializationError(f"expected the {layout.size} bytes of {name}, not {len(data)}")
        return layout.unpack(data)[0]


class IntegerSerializer(_NumberSerializer):
    """Writes int as four bytes."""

    __slots__ = ()
    _format = _INT32


class IntegerDeserializer(_NumberDeserializer):
    """Reads int from four bytes."""

    __slots__ = ()
    _format = _INT32


class LongSerializer(_NumberSerializer):
    """Writes int as eight bytes."""

    __slots__ = ()
    _format = _INT64


class LongDeserializer(_NumberDeserializer):
    """Reads int from eight bytes."""

    __slots__ = ()
    _format = _INT64


class DoubleSerializer(_NumberSerializer):
    """Writes float as eight bytes (IEEE 754)."""

    __slots__ = ()
    _format = _FLOAT64


class DoubleDeserializer(_NumberDeserializer):
    """Reads float from eight bytes (IEEE 754)."""

    __slots__ = ()
    _format = _FLOAT64


class _Writes:
    """Holds a function that is made from the fields. It is no field, so `==` ignores it."""

    __slots__ = ("_write",)
    _write: Write


class _Reads:
    """Holds a reading function in the same way as `_Writes` a writing one."""

    __slots__ = ("_read",)
    _read: Read


class JsonSerializer(Value, _Writes):
    """Writes objects as JSON text in UTF-8, without blanks.

    Takes the types that `json.dumps` takes: dict, list, tuple, str, int of any size, float, bool
    and, inside of others, None. The value None is no JSON `null` but a tombstone. NaN and the
    infinities are refused, because JSON has none. If `orjson` is installed, it makes this faster;
    the text is the same.
    """

    ensure_ascii: bool = False
    """Write characters outside of ASCII as escapes."""
    separators: tuple[str, str] = COMPACT
    """Between items, and between key and value."""
    sort_keys: bool = False
    """Write the keys of dicts in sorted order, so that equal objects are equal bytes, as keys of
    records should be.
    """
    default: Callable[[Any], Any] | None = None
    """Turns an object that JSON does not know, such as a datetime, a dataclass or a Decimal, into
    one that it knows; `str`, for example.
    """
    allow_nan: bool = False
    """Write NaN, Infinity and -Infinity, which are not JSON."""

    def __init__(
        self,
        ensure_ascii: bool = False,
        separators: tuple[str, str] = COMPACT,
        sort_keys: bool = False,
        default: Callable[[Any], Any] | None = None,
        allow_nan: bool = False,
    ) -> None:
        super().__init__(ensure_ascii, separators, sort_keys, default, allow_nan)
        write = make_writer(
            ensure_ascii=ensure_ascii,
            separators=separators,
            sort_keys=sort_keys,
            default=default,
            allow_nan=allow_nan,
        )
        object.__setattr__(self, "_write", write)

    def serialize(self, topic: str, value: Any, headers: Headers | None) -> bytes | None:
        """Return the JSON text of `value`."""
        if value is None:
            return None
        try:
            return self._write(value)
        except (TypeError, ValueError, RecursionError) as error:
            hint = ""
            if self.default is None and "is not JSON serializable" in str(error):
                hint = "; JsonSerializer(default=str) writes it as text"
            raise SerializationError(f"{error}{hint}") from error


class JsonDeserializer(Value, _Reads):
    """Reads JSON text in UTF-8, as `json.loads` does.

    If `orjson` is installed, it makes this faster; the result is the same.
    """

    object_hook: Callable[[dict[str, Any]], Any] | None = None
    """Called with each dict; its result takes the dict's place."""
    parse_float: Callable[[str], Any] | None = None
    """Called with the text of each number that has a fraction or an exponent; `decimal.Decimal`,
    for example.
    """
    allow_nan: bool = False
    """Accept NaN, Infinity and -Infinity, which are not JSON."""

    def __init__(
        self,
        object_hook: Callable[[dict[str, Any]], Any] | None = None,
        parse_float: Callable[[str], Any] | None = None,
        allow_nan: bool = False,
    ) -> None:
        super().__init__(object_hook, parse_float, allow_nan)
        read = make_reader(object_hook=object_hook, parse_float=parse_float, allow_nan=allow_nan)
        object.__setattr__(self, "_read", read)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None) -> Any:
        """Return the object that the JSON text `data` describes."""
        if data is None:
            return None
        try:
            return self._read(data)
        except (ValueError, RecursionError) as error:
            raise SerializationError(str(error)) from error


class CallableSerializer(Value):
    """Makes a serializer from a callable that takes only the value."""

    function: Callable[[Any], bytes | None]

    def serialize(self, topic: str, value: Any, headers: Headers | None) -> bytes | None:
        """Return the callable's result; None stays None, without a call."""
        return None if value is None else self.function(value)


class CallableDeserializer(Value):
    """Makes a deserializer from a callable that takes only the bytes."""

    function: Callable[[bytes], Any]

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None) -> Any:
        """Return the callable's result; None stays None, without a call."""
        return None if data is None else self.function(data)


SERIALIZERS: Final[Mapping[str, type[Serializer]]] = MappingProxyType(
    {
        "StringSerializer": StringSerializer,
        "BytesSerializer": BytesSerializer,
        "ByteArraySerializer": BytesSerializer,
        "IntegerSerializer": IntegerSerializer,
        "LongSerializer": LongSerializer,
        "DoubleSerializer": DoubleSerializer,
        "JsonSerializer": JsonSerializer,
    }
)
"""Built-in serializers by short name, which is Java's if Java has the serializer."""

DESERIALIZERS: Final[Mapping[str, type[Deserializer]]] = MappingProxyType(
    {
        "StringDeserializer": StringDeserializer,
        "BytesDeserializer": BytesDeserializer,
        "ByteArrayDeserializer": BytesDeserializer,
        "IntegerDeserializer": IntegerDeserializer,
        "LongDeserializer": LongDeserializer,
        "DoubleDeserializer": DoubleDeserializer,
        "JsonDeserializer": JsonDeserializer,
    }
)
"""Built-in deserializers by short name, which is Java's if Java has the deserializer."""


def as_serializer(given: SerializerLike | None, encoding: str = "utf-8") -> Serializer | None:
    """Return the serializer for a configuration's value.

    Args:
        given: None, a serializer, a callable, or a name from `SERIALIZERS`. Java's full class name
            will do, too.
        encoding: encoding of a StringSerializer that is given by name.

    Raises:
        ValueError: there is no serializer of that name.
        TypeError: the value has another type.
    """
    if isinstance(given, str):
        made = _named(SERIALIZERS, given)
        return StringSerializer(encoding) if made is StringSerializer else made()
    if given is None or _has_method(given, "serialize"):
        return cast("Serializer | None", given)
    if callable(given) and not hasattr(given, "serialize"):
        return CallableSerializer(given)
    raise TypeError(f"not a serializer: {given!r}")


def as_deserializer(given: DeserializerLike | None, encoding: str = "utf-8") -> Deserializer | None:
    """Return the deserializer for a configuration's value; see `as_serializer`."""
    if isinstance(given, str):
        made = _named(DESERIALIZERS, given)
        return StringDeserializer(encoding) if made is StringDeserializer else made()
    if given is None or _has_method(given, "deserialize"):
        return cast("Deserializer | None", given)
    if callable(given) and not hasattr(given, "deserialize"):
        return CallableDeserializer(given)
    raise TypeError(f"not a deserializer: {given!r}")


def serialize(
    serializer: Serializer, part: str, topic: str, value: object, headers: Headers | None
) -> bytes | None:
    """Run a serializer, which may be a user's, over one key or value.

    Args:
        serializer: from `as_serializer`.
        part: `key` or `value`; errors name it.
        topic: the record's topic.
        value: what to serialize.
        headers: the record's headers.

    Raises:
        SerializationError: the serializer raised, or returned neither bytes nor None.
    """
    try:
        data = serializer.serialize(topic, value, headers)
    except Exception as error:
        raise SerializationError(
            f"the {part} of a record for topic {topic!r}: {_name_of(serializer)} failed on "
            f"{type(value).__name__}: {error}"
        ) from error
    if data is not None and not isinstance(data, bytes | bytearray | memoryview):
        raise SerializationError(
            f"the {part} of a record for topic {topic!r}: {_name_of(serializer)} returned "
            f"{type(data).__name__}, not bytes"
        )
    return data


def _named(known: Mapping[str, type[Any]], name: str) -> type[Any]:
    """Return the class with a short name, or with Java's full name."""
    made = known.get(name.strip().removeprefix(_JAVA_PACKAGE))
    if made is None:
        raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    return made


def _has_method(value: object, method: str) -> bool:
    # A class has its instances' methods too, but its constructor must be called first.
    return not isinstance(value, type) and callable(getattr(value, method, None))


def _name_of(serializer: Serializer) -> str:
    if isinstance(serializer, CallableSerializer):
        return str(getattr(serializer.function, "__qualname__", repr(serializer.function)))
    return type(serializer).__name__


def _expected(what: str, value: object) -> SerializationError:
    hint = " (JsonSerializer writes it as JSON)" if isinstance(value, dict | list) else ""
    return SerializationError(f"expected {what}{hint}")
