"""A link whose bytes a relay encrypts."""

from kafka_fast.dataplane.core.link cimport KF_LINK_WORDS
from kafka_fast.dataplane.core.structs cimport kf_link_io


ctypedef struct relayed:
    int references  # the object's and the link's
    kf_link_io below
    int size        # of `words`; set last
    char words[KF_LINK_WORDS]


cdef class Relayed:
    cdef relayed* state
