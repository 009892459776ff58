"""What users' threads of one client sleep on."""

from kafka_fast.dataplane.core._plane cimport DataPlane


cdef class Wake:
    cdef DataPlane plane  # has the wake
