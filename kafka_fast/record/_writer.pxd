"""Encoding of a record's headers, shared with the producer's append path."""


# Encode (name, value) pairs as a record carries them, their count included; None for no headers.
# Raises TypeError for anything else than (str, bytes-like | str | None) pairs.
cdef bytes encode_headers(object headers)
