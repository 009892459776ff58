"""The parts of a record as callers bring them: bytes of keys, values and headers, and numbers.

Thread: any caller's, with the GIL.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast._wire.layout cimport kf_put_varint
from kafka_fast.dataplane.produce._queues cimport Queues, TopicQueues

from collections.abc import Mapping

from kafka_fast.errors import SerializationError, UsageError
from kafka_fast.logs import get_logger
from kafka_fast.times import HOW_TO_GIVE_MS, datetime_ms, float_hint, is_datetime, likely_unit

logger = get_logger("kafka_fast.producer")

cdef extern from "Python.h":
    bint PyCallable_Check(object callback)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef int borrow(borrowed* field, object value, str topic, str what) except -1:
    cdef Py_ssize_t size
    field.has_view = False
    if PyBytes_CheckExact(value):
        field.data = <const uint8_t*>PyBytes_AS_STRING(value)
        field.len = PyBytes_GET_SIZE(value)
    elif value is None:
        field.data = NULL
        field.len = -1
    elif PyUnicode_Check(value):
        try:
            field.data = <const uint8_t*>PyUnicode_AsUTF8AndSize(value, &size)
        except UnicodeEncodeError as error:
            raise SerializationError(f"{what} for topic {topic!r}: {error}") from error
        field.len = size
    elif PyObject_CheckBuffer(value):
        borrow_buffer(field, value, topic, what)
    else:
        raise TypeError(f"{what} for topic {topic!r} must be bytes-like, str or None, "
                        f"not {type(value).__name__}{serializer_for(value, what)}")
    return 0


cdef str serializer_for(object value, str what):
    """Return the end of a message: how a value of this kind can be sent."""
    if what.startswith("header"):
        return ""
    part = "key" if "key" in what else "value"
    if isinstance(value, (dict, list, tuple)):
        return f": {part}_serializer=JsonSerializer() sends it as JSON"
    return f": give the producer a {part}_serializer, or pass bytes"


cdef int borrow_buffer(borrowed* field, object value, str topic, str what) except -1:
    try:
        PyObject_GetBuffer(value, &field.view, PyBUF_SIMPLE)
    except BufferError as error:
        raise TypeError(f"{what} for topic {topic!r} is not contiguous in memory: pass "
                        f"bytes({what})") from error
    field.data = <const uint8_t*>field.view.buf
    field.len = field.view.len
    field.has_view = True
    if field.data == NULL:  # an empty buffer may have no address; NULL means null here
        field.data = <const uint8_t*>b""
    return 0


cdef void give_back(borrowed* field) noexcept:
    if field.has_view:
        field.has_view = False
        PyBuffer_Release(&field.view)


cdef list pairs_of(object headers, str topic):
    if isinstance(headers, (dict, Mapping)):
        return list(headers.items())
    try:
        return list(headers)
    except TypeError as error:
        raise TypeError(f"headers for topic {topic!r} must be (key, value) pairs or a mapping, "
                        f"not {type(headers).__name__}") from error


cdef tuple pair_of(object pair, str topic):
    """Return a header's key and value. A text of two letters is no pair."""
    if not isinstance(pair, (str, bytes, bytearray)):
        try:
            name, value = pair
            return name, value
        except (TypeError, ValueError):
            pass
    raise TypeError(f"headers for topic {topic!r} must be (key, value) pairs, "
                    f"not {type(pair).__name__}")


cdef bytes encode_headers(object headers, str topic):
    """Return the headers as they stand in a record, count included; None if there are none.

    Args:
        headers: (key, value) pairs or a mapping; keys are str, values bytes-like, str or None. A
            key may occur more than once among pairs.
    """
    cdef list pairs = pairs_of(headers, topic)
    cdef list parts = []
    cdef borrowed field
    cdef uint8_t scratch[16]
    cdef uint8_t* end
    if not pairs:
        return None
    end = kf_put_varint(scratch, len(pairs))
    parts.append(PyBytes_FromStringAndSize(<char*>scratch, end - scratch))
    for pair in pairs:
        name, value = pair_of(pair, topic)
        if not PyUnicode_Check(name):
            raise TypeError(f"a header's key for topic {topic!r} must be str, "
                            f"not {type(name).__name__}")
        for part, what in ((name, "a header's key"), (value, f"header {name!r}")):
            borrow(&field, part, topic, what)
            end = kf_put_varint(scratch, field.len)
            parts.append(PyBytes_FromStringAndSize(<char*>scratch, end - scratch))
            if field.len > 0:
                parts.append(PyBytes_FromStringAndSize(<char*>field.data, field.len))
            give_back(&field)
    return b"".join(parts)


cdef int check_callback(object callback, str name, str told) except -1:
    if not PyCallable_Check(callback):
        raise TypeError(f"{callback!r} cannot be called; {name} is called with {told}")
    return 0


cdef int32_t check_partition(TopicQueues topic, object partition) except -1:
    """Return the partition's number, which must exist."""
    cdef int64_t number
    if not PyLong_CheckExact(partition):
        if not PyIndex_Check(partition):
            raise TypeError(f"a partition of topic {topic.name!r} must be int, not "
                            f"{type(partition).__name__}")
        partition = partition.__index__()
    try:
        number = partition
    except OverflowError:
        number = -1
    if number < 0 or number >= topic.topic.partition_count:
        raise UsageError(f"topic {topic.name!r} has partitions 0 to "
                         f"{topic.topic.partition_count - 1}, not {partition}")
    return <int32_t>number


cdef int64_t check_timestamp(Queues queues, TopicQueues topic, object timestamp_ms) except? -1:
    cdef int64_t timestamp
    if not PyIndex_Check(timestamp_ms):
        return time_of(timestamp_ms, f"a timestamp for topic {topic.name!r}")
    try:
        timestamp = timestamp_ms
    except OverflowError:
        timestamp = -1
    if timestamp < 0:
        raise UsageError(f"a timestamp for topic {topic.name!r} must be Unix ms in int64, not "
                         f"{timestamp_ms}")
    if is_odd_time(timestamp):
        suspect_time(queues, topic.name, timestamp)
    return timestamp


cdef int suspect_time(Queues queues, str topic, int64_t ms) except -1:
    unit = None if queues.has_odd_times else likely_unit(ms)
    if unit is None or unit == "milliseconds":
        return 0
    queues.has_odd_times = True
    logger.warning("the timestamp %d of a record for topic %r looks like %s, and is taken for "
                   "Unix ms: %s", ms, topic, unit, HOW_TO_GIVE_MS,
                   extra={"client_id": queues.client_id})
    return 0


cdef int64_t time_of(object given, str what) except? -1:
    """Return the Unix time in ms of what is no integer: a datetime with a time zone."""
    if not is_datetime(given):
        raise TypeError(f"{what} must be int (Unix ms) or a datetime with a time zone, not "
                        f"{type(given).__name__}{float_hint(given)}")
    return datetime_ms(given, what)
