"""How a Kafka message is declared, and how a declaration becomes a codec program.

A schema is written once: one class for all versions of a message, with the versions as ranges on
its fields. The client and the embedded broker run the same class in both directions.

    class MetadataRequestTopic(Struct):
        topic_id: bytes = uuid("10+", ignorable=True)
        name: str | None = string("0+", nullable="10+")

    class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
        topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+")

Names are those of Apache's message definitions, in snake_case. Types, ranges, defaults and tags are
also Apache's, and a test compares them field by field. The annotation is for the reader and the
type checker; the right-hand side is the schema.

Instances are slotted, compare by value and are built from keywords; a field that is not given has
its default. A class compiles itself on first use, once per version (`_program.Program`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from kafka_fast.errors import MalformedError, UnsupportedVersionError
from kafka_fast.protocol._decode import decode, decode_front, decode_later
from kafka_fast.protocol._encode import encode, position_of
from kafka_fast.protocol._program import Op, Program

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Stand in for `typing.dataclass_transform`, which Python 3.10 does not have."""
        return lambda decorated: decorated


#: The argument of `decode`, and the value of `records` fields: any object with contiguous bytes.
Buffer = bytes | bytearray | memoryview

M = TypeVar("M", bound="Message")

LAST = 0x7FFF  # the end of an open range: the highest version that an int16 can hold
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Versions(NamedTuple):
    """A range of versions, ends included; empty if `low` is above `high`."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == LAST:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NO_VERSIONS = Versions(1, 0)


def parse_versions(text: str) -> Versions:
    """Parse "3", "3-5", "3+" or "none"."""
    if text == "none":
        return NO_VERSIONS
    low, dash, high = text.partition("-")
    if dash:
        return Versions(int(low), int(high))
    return Versions(int(low[:-1]), LAST) if low.endswith("+") else Versions(int(low), int(low))


def snake_case(name: str) -> str:
    """Return our name for Apache's field `name`: "TopicId" becomes `topic_id`."""
    return _CAMEL.sub("_", name).lower()


class VersionedField(NamedTuple):
    """A field in one version, in the order in which `_program.Program` unpacks it."""

    name: str
    op: int
    item: int
    """Op of an array's elements, otherwise 0."""
    present: bool
    """Whether the version has the field; otherwise it takes its default."""
    nullable: bool
    compact: bool
    """Lengths are unsigned varints plus one."""
    ignorable: bool
    tag: int  # -1: positional
    foreign_tag: int
    """A tag that the field has in other versions only; -1: none."""
    default: Any
    """For arrays and structs only null counts."""
    program: Program | None
    """Of a struct, or of an array of structs."""


class Field:
    """One field of a struct, for all versions."""

    __slots__ = (
        "default", "flexible", "ignorable", "item", "name", "nullable", "secret", "struct", "tag",
        "tagged", "versions", "wire_type",
    )  # fmt: skip

    def __init__(
        self,
        wire_type: WireType,
        where: str,
        *,
        item: WireType | None = None,
        struct: type[Struct] | None = None,
        nullable: str = "none",
        default: Any = ...,
        ignorable: bool = False,
        tag: int = -1,
        tagged: str = "none",
        flexible: str | None = None,
        secret: bool = False,
    ) -> None:
        self.name = ""
        self.wire_type = wire_type
        self.item = item  # of an array
        self.struct = struct  # of a struct, or of an array of structs
        self.versions = parse_versions(where)
        self.nullable = parse_versions(nullable)
        self.default = wire_type.default if default is ... else default
        self.ignorable = ignorable  # a version without the field drops it in silence
        self.tag = tag
        self.tagged = parse_versions(tagged)
        # None: compact in flexible versions of the message.
        self.flexible = None if flexible is None else parse_versions(flexible)
        self.secret = secret  # no `repr` shows the value

    def in_version(self, version: int, flexible: bool, label: str) -> VersionedField:
        """Return this field's form in one version."""
        present = version in self.versions
        sub = None if self.struct is None else self.struct._compile(version, flexible, label)
        return VersionedField(
            name=self.name,
            op=self.wire_type.op,
            item=0 if self.item is None else self.item.op,
            present=present,
            nullable=version in self.nullable,
            compact=flexible if self.flexible is None else version in self.flexible,
            ignorable=self.ignorable,
            tag=self.tag if present and version in self.tagged else -1,
            foreign_tag=-1 if present and version in self.tagged else self.tag,
            default=self.default,
            program=sub,
        )


class WireType:
    """A wire type. Calling it declares a field: `int32("3+", default=-1)`."""

    __slots__ = ("default", "name", "op")

    def __init__(self, name: str, op: Op, default: Any) -> None:
        self.name = name  # name in Apache's definitions
        self.op = op
        self.default = default

    def __call__(self, where: str, **options: Any) -> Any:
        """Declare a field for the versions `where`.

        Keywords: `nullable`, `tagged` and `flexible` are ranges of versions, `tag` is a number,
        `default` a value (None is allowed). `ignorable` says that a version without the field may
        drop it, `secret` that the value may be a password and is not for logs.
        """
        return Field(self, where, **options)


bool_ = WireType("bool", Op.BOOL, False)
int8 = WireType("int8", Op.INT8, 0)
int16 = WireType("int16", Op.INT16, 0)
uint16 = WireType("uint16", Op.UINT16, 0)
int32 = WireType("int32", Op.INT32, 0)
uint32 = WireType("uint32", Op.UINT32, 0)
int64 = WireType("int64", Op.INT64, 0)
float64 = WireType("float64", Op.FLOAT64, 0.0)
uuid = WireType("uuid", Op.UUID, bytes(16))
string = WireType("string", Op.STRING, "")
bytes_ = WireType("bytes", Op.BYTES, b"")
records = WireType("records", Op.RECORDS, None)
_ARRAY = WireType("array", Op.ARRAY, [])
_STRUCT = WireType("struct", Op.STRUCT, ...)


def array(item: WireType | type[Struct], where: str, **options: Any) -> Any:
    """Declare a list of wire values or structs; options as for any other field."""
    if isinstance(item, WireType):
        return Field(_ARRAY, where, item=item, **options)
    return Field(_ARRAY, where, item=_STRUCT, struct=item, **options)


def struct(item: type[Struct], where: str, **options: Any) -> Any:
    """Declare a nested struct; options as for any other field."""
    return Field(_STRUCT, where, struct=item, **options)


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the declared fields of a class body into slots, and keeps the declarations."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> StructType:
        """Make the class; its fields keep the order of the class body."""
        fields = [(key, value) for key, value in namespace.items() if isinstance(value, Field)]
        for key, field in fields:
            field.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(key for key, _ in fields)
        made = super().__new__(mcls, name, bases, namespace, **options)
        made._fields = tuple(field for _, field in fields)
        made._programs = {}
        made._blank = None
        return made

    _fields: tuple[Field, ...]
    _programs: dict[tuple[int, bool], Program]
    _blank: Program | None


class Struct(metaclass=StructType):
    """A group of fields: a message, or a part of one."""

    _fields: ClassVar[tuple[Field, ...]]
    _programs: ClassVar[dict[tuple[int, bool], Program]]
    _blank: ClassVar[Program | None]
    __hash__: ClassVar[None]  # type: ignore[assignment]  # instances can change

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        if cls._blank is None:
            cls._blank = cls._compile(-1, False, cls.__name__)
        cls._blank.fill(self, values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self._fields)

    def __repr__(self) -> str:
        # Fields with their defaults are left out. Bytes are not shown: they are records, or secrets
        # of an authentication.
        shown = []
        blank = type(self)()
        for field in self._fields:
            value = getattr(self, field.name)
            if value == getattr(blank, field.name):
                continue
            if field.wire_type in (bytes_, records):
                value = f"<{len(value)} bytes>" if value is not None else None
            elif field.secret and value is not None:
                value = "<hidden>"
            elif field.wire_type is uuid:
                value = value.hex()
            else:
                value = repr(value)
            shown.append(f"{field.name}={value}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def encode_part(self, version: int, flexible: bool) -> bytes:
        """Return the bytes of a struct inside a message of this version."""
        label = f"{type(self).__name__} v{version}"
        return encode(self._compile(version, flexible, label), self)

    @classmethod
    def _compile(cls, version: int, flexible: bool, label: str) -> Program:
        """Return the codec program of one version; -1 stands for a version without any field."""
        key = (version, flexible)
        if key not in cls._programs:
            fields = [field.in_version(version, flexible, label) for field in cls._fields]
            fields.sort(key=lambda field: field.tag)  # tagged last, by tag; the sort is stable
            cls._programs[key] = Program(cls, label, flexible, fields)
        return cls._programs[key]


class Message(Struct):
    """A struct that stands alone on the wire.

    Class keywords:
        versions: the versions that Apache Kafka accepts.
        flexible: those that use compact lengths and tagged fields (KIP-482).
    """

    versions: ClassVar[Versions]
    flexible: ClassVar[Versions]
    _by_version: ClassVar[dict[int, Program]]

    def __init_subclass__(cls, *, versions: str = "none", flexible: str = "none") -> None:
        cls.versions = parse_versions(versions)
        cls.flexible = parse_versions(flexible)
        cls._by_version = {}

    @classmethod
    def program(cls, version: int) -> Program:
        """Return the compiled codec of a version.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        known = cls._by_version.get(version)
        if known is not None:
            return known
        if version not in cls.versions:
            raise UnsupportedVersionError(
                f"{cls.__name__} has the versions {cls.versions}, not {version}"
            )
        program = cls._compile(version, version in cls.flexible, f"{cls.__name__} v{version}")
        cls._by_version[version] = program
        return program

    def encode(self, version: int) -> bytes:
        """Return the message's bytes, without any header.

        Raises:
            TypeError, ValueError: a field's value does not fit its type.
            UnsupportedVersionError: no such version, or a field is set that the version lacks.
        """
        return encode(type(self).program(version), self)

    def position_of(self, field: str, version: int) -> int:
        """Return at which byte of `encode(version)` a field begins.

        Raises:
            ValueError: the version has no such field, or has it in the tagged section.
            UnsupportedVersionError: no such version.
        """
        return position_of(type(self).program(version), self, field)

    @classmethod
    def decode(cls, data: Buffer, version: int, *, later: str | None = None) -> Self:
        """Read a message from its bytes, without any header.

        `records` fields of the result are views of `data`; all other fields are copies.

        Args:
            data: the bytes.
            version: of the message.
            later: the name of an array whose bytes are only checked now. In the result it is an
                iterator, which makes an element when it is asked for the next one.

        Raises:
            MalformedError: the bytes are not this message in this version.
            UnsupportedVersionError: no such version.
        """
        program = cls.program(version)
        decoded: Self = (
            decode(program, data) if later is None else decode_later(program, data, later)
        )
        return decoded


class _ApiMessage(Message):
    """A request or a response: it belongs to an API."""

    api_key: ClassVar[int]

    def __init_subclass__(cls, *, api_key: int = -1, **ranges: str) -> None:
        super().__init_subclass__(**ranges)
        cls.api_key = api_key


class Request(_ApiMessage):
    """A message of a client. Class keywords: `api_key`, and those of `Message`.

    `stable` is the highest version that brokers offer by default. Brokers do not offer a version
    that Apache Kafka is still working on.
    """

    stable: ClassVar[int]

    def __init_subclass__(cls, *, unstable: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.stable = cls.versions.high - unstable


class Response(_ApiMessage):
    """A broker's answer. Class keywords: `api_key`, and those of `Message`."""


def encode_versioned(message: Message, version: int) -> bytes:
    """Return a message with its version in front, for a blob inside another message."""
    return version.to_bytes(2, "big") + message.encode(version)


def decode_versioned(cls: type[M], data: Buffer) -> M:
    """Read a message that has its version in front.

    Other clients write such blobs, also in versions above ours. Those are read as our highest
    version, and bytes behind its fields are ignored, because newer versions only append fields.

    Raises:
        MalformedError: the bytes do not follow the schema, or the version is below our lowest.
    """
    view = memoryview(data)
    if len(view) < 2:
        raise MalformedError(f"{cls.__name__}: {len(view)} bytes are too few for a version")
    version = int.from_bytes(view[:2], "big", signed=True)
    if version < cls.versions.low:
        raise MalformedError(f"{cls.__name__}: version {version}")
    decoded: M = decode_front(cls.program(min(version, cls.versions.high)), view[2:])[0]
    return decoded
