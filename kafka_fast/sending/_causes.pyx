"""What failures and long waits say of their causes.

The data plane knows how often a batch was sent and which answer came last. The control plane knows
what stands behind that, such as a link that cannot be opened. Its *explainer*
(`producer/failure_explainer`) is asked. Without one, as in a test of the data plane alone, the bare
facts are told.

Thread: any, with the GIL.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t

from kafka_fast.dataplane.core.state cimport *
from kafka_fast.dataplane.produce._queues cimport Queues

from kafka_fast.errors import (
    KafkaTimeoutError,
    TransactionError,
    UsageError,
    broker_error,
    fresh_copy,
)

cdef int OUT_OF_ORDER_SEQUENCE_NUMBER = 45


# ---- failures ----

cdef bytes detail_of(const kf_batch* batch):
    """Return what the control plane has kept of the batch's refusal, or None."""
    if batch.detail == NULL:
        return None
    return PyBytes_FromStringAndSize(<char*>batch.detail, batch.detail_size)


cdef object explained(kf_batch* batch, Queues queues, str topic, int32_t partition,
                      int32_t code, int32_t index):
    """Return (text, error or None): what the control plane knows of a failure.

    Args:
        code: what the partition's leader answered; 0: it did not answer.
    """
    if queues.explainer is None:
        return "", None
    reason = queues.explainer.explain(
        topic, partition, index, code=code, records=batch.record_count, size=batch.wire_size,
        began=batch.created, failed_at=batch.failed_at, is_sent=batch.tries > 0,
        detail=detail_of(batch))
    return reason.text, None if reason.cause is None else fresh_copy(reason.cause)


cdef object refusal_of(kf_batch* batch, Queues queues, str topic, int32_t partition,
                       int32_t code, int32_t index):
    """Return the error behind an answer with an error code."""
    _, error = explained(batch, queues, topic, partition, code, index)
    return error or broker_error(code, f"a record of {topic}-{partition} was refused")


cdef object expiry_of(kf_batch* batch, Queues queues, str topic, int32_t partition):
    """Return the error of a batch that was not acknowledged in time; the last trouble is its cause.
    """
    cdef str passed = f"delivery.timeout.ms ({queues.producer.delivery_timeout * 1000:.0f}) passed"
    cdef str where = f"a record of {topic}-{partition}"
    cdef str tries = "1 try" if batch.tries == 1 else f"{batch.tries} tries"
    cdef object cause
    if batch.last_answer != 0:
        cause = refusal_of(batch, queues, topic, partition, batch.last_answer, ANY_RECORD)
        error = KafkaTimeoutError(f"{where}: {passed} after {tries}; the last answer: {cause}")
    else:
        why, cause = explained(batch, queues, topic, partition, 0, ANY_RECORD)
        how = f"after {tries} without an answer" if batch.tries > 0 else "before it was sent"
        error = KafkaTimeoutError(f"{where}: {passed} {how}{': ' if why else ''}{why}")
    error.__cause__ = cause
    return error


cdef object stop_of(Queues queues, str where):
    """Return the error after which the producer cannot go on, each time another object."""
    cdef object fatal = None if queues.explainer is None else queues.explainer.stop_reason()
    return (UsageError(f"{where} was given up: the producer cannot go on") if fatal is None
            else fresh_copy(fatal))


cdef bint is_collateral(kf_batch* batch, Queues queues, int32_t index) except -1:
    return (batch.detail != NULL and queues.explainer is not None
            and queues.explainer.is_collateral(detail_of(batch), index))


cdef list wrong_records(kf_batch* batch, Queues queues):
    if batch.detail == NULL or queues.explainer is None:
        return []
    return queues.explainer.wrong_records(detail_of(batch))


cdef object cause_of(kf_batch* batch, Queues queues, str topic, int32_t partition, int32_t index):
    """Return the error behind a failed delivery."""
    cdef str where = f"a record of {topic}-{partition}"
    if batch.error_code == KF_ERROR_EXPIRED:
        return expiry_of(batch, queues, topic, partition)
    if batch.error_code == KF_ERROR_CLOSED:
        why, trouble = explained(batch, queues, topic, partition, batch.last_answer,
                                 ANY_RECORD)
        error = UsageError(f"the producer was closed before {where} was delivered"
                           + (f": {why}" if trouble is not None else ""))
        error.__cause__ = trouble
        return error
    if batch.error_code == KF_ERROR_ABANDONED:
        return broker_error(OUT_OF_ORDER_SEQUENCE_NUMBER,
                            f"{where} could not keep its place in the sequence")
    if batch.error_code == KF_ERROR_ABORTED:
        return TransactionError(f"{where} was not sent: its transaction was aborted")
    if batch.error_code == KF_ERROR_STOPPED:
        return stop_of(queues, where)
    return refusal_of(batch, queues, topic, partition, batch.error_code, index)


# ---- waits ----

cdef object say_waiting(Queues queues, object wait, str what, kf_batch* batch):
    if queues.explainer is None:
        return None
    return queues.explainer.log_if_long(wait, queues, what, batch.queue.id, batch.created,
                                        queues.producer.env.now(queues.producer.env.context))


cdef object timeout_error(Queues queues, str what, kf_batch* batch, double since):
    if queues.explainer is None:
        return KafkaTimeoutError(what)
    return queues.explainer.timeout_error(queues, what, batch.queue.id, min(since, batch.created),
                                          queues.producer.env.now(queues.producer.env.context))
