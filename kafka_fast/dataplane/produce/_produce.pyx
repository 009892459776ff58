"""The steady-state form of Produce: requests from batches, answers against requests.

A request is a gather list: framing that this module writes (lengths, array counts, indices)
between pieces that exist already, the batches' slabs. The fixed part of the framing comes from the
control plane as bytes that the table codec made, so field order and versions are decided there.

    prefix | topics n | topic | partitions n | index, size | slab, slab … | index, size | slab …

A retry sends the same slabs with new framing. An answer is read by its request's version and topic
names or ids: since then the link may have got another version, and a topic may have been recreated.

Called by the sender in the data plane thread; takes no GIL, knows no policy.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from kafka_fast._wire.layout cimport (
    KF_ATTRIBUTE_TRANSACTIONAL,
    KF_BATCH_HEADER_SIZE,
    KF_BATCH_LENGTH_PREFIX,
    KF_BATCH_POS_ATTRIBUTES,
    KF_BATCH_POS_CRC,
    kf_batch_header,
    kf_batch_header_put,
    kf_left,
    kf_put_i32,
    kf_put_i8,
    kf_put_uvarint,
    kf_read_i16,
    kf_read_i32,
    kf_read_i64,
    kf_read_span,
    kf_read_uvarint,
    kf_reader,
    kf_reader_of,
    kf_skip_tags,
)
from kafka_fast.dataplane.core.link cimport (
    KF_REQUEST_PRODUCE,
    iovec,
    kf_link,
    kf_link_number,
    kf_produce_form,
    kf_read_topic,
    kf_request,
    kf_request_free,
    kf_topic_field,
)
from kafka_fast.dataplane.core.state cimport (
    KF_MISFIT_FOREIGN,
    KF_MISFIT_MISSING,
    KF_MISFIT_TWICE,
    kf_batch,
    kf_misfit,
    kf_producer,
    kf_slab,
    kf_topic,
)

cdef enum:
    ARRAY_COUNT_MAX = 5  # bytes of an array's count in either form
    PARTITION_MAX = 4 + 5 + 1  # index, size of the records, empty tagged fields
    VERSION_ERROR_MESSAGES = 8  # KIP-467: record errors and a message per partition
    VERSION_LOG_START_OFFSET = 5


cdef size_t wire_size(const kf_batch* batch) noexcept nogil:
    return batch.coded.size if batch.coded != NULL else batch.size


# ---- requests ----

cdef void stamp_header(kf_producer* producer, kf_batch* batch) noexcept nogil:
    """Write the batch's header.

    The CRC of the records is taken once. A new sequence or epoch costs the CRC of 40 bytes of the
    header, and joining the two.
    """
    cdef kf_slab* first = batch.coded if batch.coded != NULL else batch.slabs
    cdef kf_slab* slab = first
    cdef kf_batch_header header
    cdef size_t skip = KF_BATCH_HEADER_SIZE
    cdef size_t records_size = wire_size(batch) - KF_BATCH_HEADER_SIZE
    cdef uint32_t crc
    if not batch.crc_known:
        crc = 0
        while slab != NULL:
            crc = producer.env.crc32c(crc, slab.data + skip, slab.size - skip)
            skip = 0
            slab = slab.next
        batch.records_crc = crc
        batch.crc_known = True
    header.base_offset = 0
    header.length = <int32_t>(wire_size(batch) - KF_BATCH_LENGTH_PREFIX)
    header.leader_epoch = -1
    header.attributes = <int16_t>(producer.codec if batch.coded != NULL else 0)
    if producer.transactional:
        header.attributes |= KF_ATTRIBUTE_TRANSACTIONAL
    header.last_offset_delta = batch.record_count - 1
    header.base_timestamp = batch.base_timestamp
    header.max_timestamp = batch.max_timestamp
    header.producer_id = batch.producer_id
    header.producer_epoch = batch.epoch
    header.base_sequence = batch.base_sequence
    header.record_count = batch.record_count
    kf_batch_header_put(first.data, &header)
    crc = producer.env.crc32c(0, first.data + KF_BATCH_POS_ATTRIBUTES,
                              KF_BATCH_HEADER_SIZE - KF_BATCH_POS_ATTRIBUTES)
    crc = producer.env.crc32c_combine(crc, batch.records_crc, records_size)
    kf_put_i32(first.data + KF_BATCH_POS_CRC, <int32_t>crc)


cdef int by_partition(const void* left, const void* right) noexcept nogil:
    """Order batches by topic, then partition: each topic stands in a request once."""
    cdef const kf_batch* one = (<const kf_batch**>left)[0]
    cdef const kf_batch* other = (<const kf_batch**>right)[0]
    if one.queue.topic != other.queue.topic:
        return one.queue.topic.id - other.queue.topic.id  # addresses differ from run to run
    return one.queue.partition - other.queue.partition


cdef uint8_t* put_count(uint8_t* at, bint flexible, int32_t count) noexcept nogil:
    """Write an array's or records' length in the form of the request's version."""
    return kf_put_uvarint(at, <uint32_t>count + 1) if flexible else kf_put_i32(at, count)


cdef int count_topic(kf_batch** batches, int start, int count) noexcept nogil:
    """Return how many batches from `start` on are of the same topic."""
    cdef int end = start + 1
    while end < count and batches[end].queue.topic == batches[start].queue.topic:
        end += 1
    return end - start


cdef int count_pieces(kf_batch** batches, int count) noexcept nogil:
    """Return an upper bound of the gather list's length: framing before each batch and at the
    end, and the slabs.
    """
    cdef int pieces = count + 1
    cdef int i
    cdef const kf_slab* slab
    for i in range(count):
        slab = batches[i].coded if batches[i].coded != NULL else batches[i].slabs
        while slab != NULL:
            pieces += 1
            slab = slab.next
    return pieces


cdef size_t bound_framing(const kf_link* link, kf_batch** batches, int count) noexcept nogil:
    """Return an upper bound of the bytes that are this request's own."""
    cdef size_t size = link.prefix_size + ARRAY_COUNT_MAX + 1
    cdef int i
    for i in range(count):
        size += (batches[i].queue.topic.field_size[link.form.topic_format] + ARRAY_COUNT_MAX + 1
                 + PARTITION_MAX)
    return size


cdef void add_piece(kf_request* request, const uint8_t* start, size_t len) noexcept nogil:
    request.pieces[request.piece_count].iov_base = <void*>start
    request.pieces[request.piece_count].iov_len = len
    request.piece_count += 1
    request.size += len


cdef kf_request* new_request(const kf_link* link, kf_batch** batches, int count) noexcept nogil:
    """Allocate a request for these batches, or return NULL."""
    cdef kf_request* request = <kf_request*>calloc(1, sizeof(kf_request))
    if request == NULL:
        return NULL
    request.kind = KF_REQUEST_PRODUCE
    request.framing = <uint8_t*>malloc(bound_framing(link, batches, count))
    request.pieces = <iovec*>malloc(count_pieces(batches, count) * sizeof(iovec))
    request.batches = <kf_batch**>malloc(count * sizeof(kf_batch*))
    request.topics = <kf_topic_field*>malloc(count * sizeof(kf_topic_field))
    if (request.framing == NULL or request.pieces == NULL or request.batches == NULL
            or request.topics == NULL):
        kf_request_free(request)
        return NULL
    request.batch_count = count
    request.form = link.form
    return request


cdef kf_request* build_request(kf_producer* producer, kf_link* link, kf_batch** batches,
                               int count) noexcept nogil:
    cdef kf_request* request
    cdef kf_topic* topic
    cdef kf_topic_field field
    cdef kf_slab* slab
    cdef uint8_t* at
    cdef uint8_t* piece
    cdef int i
    cdef int topics = 0
    cdef int left_in_topic = 0
    cdef int form = link.form.topic_format
    cdef bint flexible = link.form.flexible
    qsort(batches, count, sizeof(kf_batch*), by_partition)
    request = new_request(link, batches, count)
    if request == NULL:
        return NULL
    memset(&field, 0, sizeof(field))
    memcpy(request.batches, batches, count * sizeof(kf_batch*))
    for i in range(count):
        if i == 0 or batches[i].queue.topic != batches[i - 1].queue.topic:
            topics += 1

    piece = request.framing
    memcpy(piece, link.prefix, link.prefix_size)
    at = put_count(piece + link.prefix_size, flexible, topics)
    for i in range(count):
        topic = batches[i].queue.topic
        if left_in_topic == 0:
            left_in_topic = count_topic(batches, i, count)
            memcpy(at, topic.field[form], topic.field_size[form])
            field.start = at
            field.size = topic.field_size[form]
            at = put_count(at + field.size, flexible, left_in_topic)
        request.topics[i] = field
        stamp_header(producer, batches[i])
        at = kf_put_i32(at, batches[i].queue.partition)
        at = put_count(at, flexible, <int32_t>wire_size(batches[i]))
        add_piece(request, piece, at - piece)
        piece = at
        slab = batches[i].coded if batches[i].coded != NULL else batches[i].slabs
        while slab != NULL:
            add_piece(request, slab.data, slab.size)
            slab = slab.next
        left_in_topic -= 1
        if flexible:
            at = kf_put_i8(at, 0)  # no tagged fields of the partition
            if left_in_topic == 0:
                at = kf_put_i8(at, 0)  # nor of the topic
    if flexible:
        at = kf_put_i8(at, 0)  # nor of the request
        add_piece(request, piece, at - piece)

    request.answered = not producer.acks_zero
    request.timeout = producer.plane.request_timeout
    kf_put_i32(request.framing, <int32_t>(request.size - 4))
    kf_link_number(link, request)
    return request


# ---- answers ----

cdef int32_t read_count(kf_reader* reader, bint flexible) noexcept nogil:
    """Read an array's count; a null array, or more elements than bytes left, is bad."""
    cdef int64_t count
    if flexible:
        count = <int64_t>kf_read_uvarint(reader) - 1
    else:
        count = kf_read_i32(reader)
    if count < 0 or <size_t>count > kf_left(reader):
        reader.bad = True
        return 0
    return <int32_t>count


cdef void skip_string(kf_reader* reader, bint flexible) noexcept nogil:
    """Skip a nullable string."""
    cdef int64_t len
    if flexible:
        len = <int64_t>kf_read_uvarint(reader) - 1
    else:
        len = kf_read_i16(reader)
    if len < -1:
        reader.bad = True
    if len > 0:
        kf_read_span(reader, len)


cdef void read_partition(kf_reader* reader, const kf_produce_form* form,
                         produce_answer* answer, int32_t* partition) noexcept nogil:
    """Read one partition's answer."""
    cdef int32_t _i
    partition[0] = kf_read_i32(reader)
    answer.error_code = kf_read_i16(reader)
    answer.base_offset = kf_read_i64(reader)
    answer.append_time_ms = kf_read_i64(reader)
    if form.version >= VERSION_LOG_START_OFFSET:
        kf_read_i64(reader)
    if form.version >= VERSION_ERROR_MESSAGES:
        for _i in range(read_count(reader, form.flexible)):
            if reader.bad:
                break
            kf_read_i32(reader)
            skip_string(reader, form.flexible)
            if form.flexible:
                kf_skip_tags(reader)
        skip_string(reader, form.flexible)
    if form.flexible:
        kf_skip_tags(reader)


cdef int find_batch(const kf_request* request, int hint, const uint8_t* topic, size_t topic_size,
                    int32_t partition) noexcept nogil:
    """Return the position of the batch that went to this partition, or -1.

    Brokers answer in the order of the request, so `hint` is nearly always right. Topics are
    compared with the request's own fields: a topic that was recreated since has another id by now.
    """
    cdef int i, pos
    cdef const kf_topic_field* field
    for i in range(request.batch_count):
        pos = (hint + i) % request.batch_count
        field = &request.topics[pos]
        if (request.batches[pos].queue.partition == partition and field.size == topic_size
                and memcmp(field.start, topic, topic_size) == 0):
            return pos
    return -1


cdef bint take_partition(kf_reader* reader, const kf_request* request, const uint8_t* topic,
                         size_t topic_size, produce_answer* answers, int place,
                         kf_misfit* misfit) noexcept nogil:
    """Read one partition's answer into its batch's place. False: it fits no batch."""
    cdef produce_answer answer
    cdef int32_t partition
    cdef int pos
    read_partition(reader, &request.form, &answer, &partition)
    if reader.bad:
        return False
    pos = find_batch(request, place, topic, topic_size, partition)
    if pos < 0 or answers[pos].seen:
        misfit.kind = KF_MISFIT_FOREIGN if pos < 0 else KF_MISFIT_TWICE
        misfit.place = place
        return False
    answer.seen = True
    answer.queue = request.batches[pos].queue
    answers[pos] = answer
    return True


cdef void find_missing(const kf_request* request, const produce_answer* answers,
                       kf_misfit* misfit) noexcept nogil:
    """Say which partition a well-formed answer leaves out, if it does."""
    cdef int i
    for i in range(request.batch_count):
        if not answers[i].seen:
            misfit.kind = KF_MISFIT_MISSING
            misfit.asked = request.batches[i].queue.id
            return


cdef bint scan_answer(const kf_request* request, const uint8_t* frame, int64_t size,
                      produce_answer* answers, int32_t* throttle_ms,
                      kf_misfit* misfit) noexcept nogil:
    cdef kf_reader reader = kf_reader_of(frame, size)
    cdef const kf_produce_form* form = &request.form
    cdef const uint8_t* topic
    cdef size_t topic_size
    cdef int32_t _i, _j
    cdef int found = 0
    memset(answers, 0, request.batch_count * sizeof(produce_answer))
    memset(misfit, 0, sizeof(kf_misfit))
    misfit.asked = -1
    kf_read_i32(&reader)  # the correlation id, matched already
    if form.flexible:
        kf_skip_tags(&reader)
    for _i in range(read_count(&reader, form.flexible)):
        topic = kf_read_topic(&reader, form.topic_format, &topic_size)
        for _j in range(read_count(&reader, form.flexible)):
            if not take_partition(&reader, request, topic, topic_size, answers, found, misfit):
                return False
            found += 1
        if form.flexible:
            kf_skip_tags(&reader)
        if reader.bad:
            return False
    throttle_ms[0] = kf_read_i32(&reader)
    if form.flexible:
        kf_skip_tags(&reader)
    if reader.bad or kf_left(&reader) != 0:
        return False
    find_missing(request, answers, misfit)
    return misfit.kind != KF_MISFIT_MISSING
