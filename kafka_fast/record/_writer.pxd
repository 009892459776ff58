"""Encoding of a record's headers, shared with the producer's append path."""


# Encode (name, value) pairs as in a record, with their count in front; None for no headers.
# Raises TypeError unless each pair is (str, bytes-like | str | None).
cdef bytes encode_headers(object headers)
