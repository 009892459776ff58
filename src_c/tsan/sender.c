/* The smallest data plane and control plane that use all of the shared state. Their lists and
 * policy are loops over a few queues; they use what threads share as the real planes do.
 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW = 3, FRAMING_MAX = 12 + 8 * QUEUES, SLABS_MAX = 64 };

typedef struct sender {
    harness *shared;
    kf_link *links[LINKS];
    bool has_news[QUEUES]; /* the inbox named the queue, or one of its flights has ended */
    int urgency[QUEUES];
    bool has_data[QUEUES];
    uint64_t random;
    int32_t links_made;
} sender;

/* ---- a link over a socket pair ---- */

static int64_t pair_write(void *context, const struct iovec *pieces, int count, int *error) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    ssize_t sent = sendmsg((int)(intptr_t)context, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) {
        return KF_IO_WANT_WRITE;
    }
    *error = errno;
    return sent < 0 ? KF_IO_ERROR : sent;
}

static int64_t pair_read(void *context, void *into, size_t size, int *error) {
    ssize_t got = recv((int)(intptr_t)context, into, size, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return KF_IO_WANT_READ;
    }
    *error = errno;
    return got < 0 ? KF_IO_ERROR : got;
}

static void pair_close(void *context) {
    shutdown((int)(intptr_t)context, SHUT_RDWR);
}

static void pair_dispose(void *context) {
    close((int)(intptr_t)context);
}

static kf_link *connect_link(sender *it) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        fail("no socket pair");
    }
    kf_link_io io = {.write = pair_write,
                     .read = pair_read,
                     .close = pair_close,
                     .dispose = pair_dispose,
                     .context = (void *)(intptr_t)fds[0]};
    kf_link *link = kf_link_new(++it->links_made, 0, &io, fds[0]);
    if (link == NULL) {
        fail("out of memory");
    }
    broker_serve(fds[1], next_random(&it->random));
    return link;
}

/* ---- freezing and reporting, as _outcomes.pyx does ---- */

static void report(sender *it, kf_queue *queue) {
    if (!queue->frozen || queue->in_flight > 0 || queue->reported == queue->generation) {
        return;
    }
    queue->reported = queue->generation;
    kf_event *event = kf_event_new(KF_EVENT_QUEUE_REPORT);
    event->queue_report.queue.queue_id = queue->id;
    event->queue_report.queue.generation = queue->generation;
    for (kf_batch *batch = queue->unresolved; batch != NULL; batch = batch->next) {
        kf_batch_row *row = kf_append_batch_row(&event->queue_report.batches);
        row->queue_id = queue->id;
        row->generation = queue->generation;
        row->serial = batch->serial;
        row->slice = batch->slice;
        row->error_code = batch->last_error;
        row->base_sequence = batch->base_sequence;
        row->record_count = batch->record_count;
    }
    kf_plane_event(&it->shared->plane, event);
}

static void come_back(sender *it, kf_batch *batch, int16_t code) {
    kf_queue *queue = batch->queue;
    queue->in_flight--;
    queue->frozen = true;
    queue->generation = it->shared->producer->next_generation++;
    batch->last_error = code;
    kf_set(&batch->state, KF_BATCH_WAITING);
    kf_queue_return(queue, batch);
}

static void complete(sender *it, kf_batch *batch, int64_t base_offset) {
    kf_queue *queue = batch->queue;
    queue->in_flight--;
    it->has_news[queue->id] = true;
    kf_set(&batch->state, KF_BATCH_WAITING);
    kf_batch_end(batch, KF_BATCH_ACKED, 0, KF_OUTCOME_NONE, base_offset, -1);
    report(it, queue);
}

/* ---- answers ---- */

static void hang_up(sender *it, int index) {
    kf_link *link = it->links[index];
    kf_request *request = kf_link_abandon(link);
    link->io.close(link->io.context);
    while (request != NULL) {
        kf_request *next = request->next;
        for (int i = 0; i < request->batch_count; i++) {
            come_back(it, request->batches[i], ANSWER_OK);
        }
        kf_request_free(request);
        request = next;
    }
    for (int i = index; i < QUEUES; i += LINKS) {
        report(it, &it->shared->queues[i]);
    }
    kf_link_free(link);
    it->links[index] = connect_link(it);
}

static void take_answer(sender *it, kf_link *link, const uint8_t *frame, int64_t size) {
    kf_reader reader = kf_reader_of(frame, (size_t)size);
    kf_request *request =
        kf_link_answered(link, kf_read_i32(&reader), it->shared->plane.env.now(NULL));
    if (request == NULL) {
        fail("an answer to nothing");
    }
    kf_reader second = reader;
    for (int i = 0; i < request->batch_count; i++) {
        int16_t code = kf_read_i16(&reader);
        kf_read_i64(&reader);
        if (code != ANSWER_OK) {
            come_back(it, request->batches[i], code);
            request->batches[i] = NULL;
        }
    }
    for (int i = 0; i < request->batch_count; i++) {
        kf_read_i16(&second);
        int64_t base_offset = kf_read_i64(&second);
        if (request->batches[i] != NULL) {
            complete(it, request->batches[i], base_offset);
        }
    }
    for (int i = 0; i < QUEUES; i++) {
        report(it, &it->shared->queues[i]);
    }
    kf_request_free(request);
}

static bool receive(sender *it, kf_link *link) {
    const uint8_t *frame;
    int64_t size;
    int error;
    int got = kf_link_read(link, &error);
    while (got > 0 && kf_link_frame(link, 1 << 20, &frame, &size) == 1) {
        take_answer(it, link, frame, size);
        kf_link_consume(link, size);
    }
    return got >= 0;
}

/* ---- commands ---- */

/* Return whether the command is about the queue's present freeze. */
static bool is_answered(const kf_queue *queue, int64_t generation) {
    return queue->frozen && queue->generation == generation;
}

static kf_batch *take_judged(kf_queue *queue, int64_t serial, int32_t slice) {
    kf_batch *batch = kf_queue_take_unresolved(queue, serial, slice);
    if (batch == NULL) {
        fail("a verdict on a batch that is not there");
    }
    return batch;
}

static void thaw(sender *it, const kf_thaw_queue *command) {
    if (is_answered(command->queue, command->generation)) {
        command->queue->frozen = false;
        it->has_news[command->queue->id] = true;
    }
}

static void renumber(const kf_renumber_queue *command) {
    if (is_answered(command->queue, command->generation)) {
        kf_queue_renumber(command->queue, command->serial, command->slice, -1, -1,
                          command->base_sequence);
    }
}

static void complete_judged(const kf_complete_batch *command) {
    if (is_answered(command->queue, command->generation)) {
        kf_batch_end(take_judged(command->queue, command->serial, command->slice), KF_BATCH_ACKED,
                     0, KF_OUTCOME_NONE, -1, -1);
    }
}

static void refuse(kf_batch *batch, int32_t error_code) {
    kf_batch_end(batch, KF_BATCH_FAILED, error_code, KF_OUTCOME_REJECTED, -1, -1);
}

static void split(sender *it, const kf_split_batch *command) {
    if (!is_answered(command->queue, command->generation)) {
        return;
    }
    kf_batch *batch = take_judged(command->queue, command->serial, command->slice);
    if (kf_queue_split(command->queue, batch, command->size)) {
        kf_count(&it->shared->producer->stats.splits, 1);
    } else {
        refuse(batch, command->error_code);
    }
}

static void give_up(const kf_fail_batch *command) {
    if (is_answered(command->queue, command->generation)) {
        refuse(take_judged(command->queue, command->serial, command->slice), command->error_code);
    }
}

/* Of all commands the harness sends five. */
static void carry_out(sender *it, kf_produce_command *command) {
    if (command->kind == KF_COMMAND_THAW_QUEUE) {
        thaw(it, &command->thaw_queue);
    } else if (command->kind == KF_COMMAND_RENUMBER_QUEUE) {
        renumber(&command->renumber_queue);
    } else if (command->kind == KF_COMMAND_COMPLETE_BATCH) {
        complete_judged(&command->complete_batch);
    } else if (command->kind == KF_COMMAND_SPLIT_BATCH) {
        split(it, &command->split_batch);
    } else if (command->kind == KF_COMMAND_FAIL_BATCH) {
        give_up(&command->fail_batch);
    } else {
        fail("a command that the harness does not send");
    }
}

static void carry_out_commands(sender *it) {
    kf_command *command = kf_plane_take_commands(&it->shared->plane);
    while (command != NULL) {
        kf_command *next = command->next;
        carry_out(it, &command->produce);
        kf_command_free(command);
        command = next;
    }
}

/* ---- requests ---- */

static kf_batch *next_batch(sender *it, kf_queue *queue) {
    kf_batch *batch = kf_queue_take_first(queue);
    if (batch == NULL) {
        batch = kf_queue_take_sealed(queue, it->urgency[queue->id] > KF_LINGERS, (size_t)-1,
                                     it->shared->producer->seal_size);
    }
    if (batch != NULL && !batch->sequenced) {
        batch->sequenced = true;
        batch->base_sequence = queue->next_sequence;
        queue->next_sequence = kf_sequence_after(queue->next_sequence, batch->record_count);
    }
    return batch;
}

static void put_header(kf_batch *batch) {
    kf_batch_header header = {.base_sequence = batch->base_sequence,
                              .base_timestamp = batch->base_timestamp,
                              .max_timestamp = batch->max_timestamp,
                              .record_count = batch->record_count};
    kf_batch_header_put(batch->slabs->data, &header);
}

static void add_piece(kf_request *request, const void *start, size_t len) {
    if (request->piece_count == QUEUES * SLABS_MAX) {
        fail("a batch of too many slabs");
    }
    request->pieces[request->piece_count++] = (struct iovec){(void *)(uintptr_t)start, len};
    request->size += len;
}

static kf_request *request_new(void) {
    kf_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        fail("out of memory");
    }
    request->kind = KF_REQUEST_PRODUCE;
    request->answered = true;
    request->framing = malloc(FRAMING_MAX);
    request->pieces = malloc(QUEUES * SLABS_MAX * sizeof *request->pieces);
    request->batches = malloc(QUEUES * sizeof(kf_batch *));
    if (request->framing == NULL || request->pieces == NULL || request->batches == NULL) {
        fail("out of memory");
    }
    return request;
}

/* One batch of each queue of the link that has something to send; NULL if none has. */
static kf_request *build_request(sender *it, int index) {
    kf_request *request = request_new();
    kf_link *link = it->links[index];
    uint8_t *piece = request->framing;
    uint8_t *at = piece + 12;
    for (int i = index; i < QUEUES; i += LINKS) {
        kf_queue *queue = &it->shared->queues[i];
        kf_batch *batch = queue->frozen || !it->has_data[i] ? NULL : next_batch(it, queue);
        if (batch == NULL) {
            it->has_data[i] = false; /* until there is news */
            continue;
        }
        put_header(batch);
        kf_histogram_add(&it->shared->producer->stats.batch_bytes, (double)batch->size, 1.0);
        kf_set(&batch->state, KF_BATCH_IN_FLIGHT);
        queue->in_flight++;
        it->has_news[i] = true;
        request->batches[request->batch_count++] = batch;
        at = kf_put_i32(at, i);
        at = kf_put_i32(at, (int32_t)batch->size);
        add_piece(request, piece, (size_t)(at - piece));
        piece = at;
        for (kf_slab *slab = batch->slabs; slab != NULL; slab = slab->next) {
            add_piece(request, slab->data, slab->size);
        }
    }
    if (request->batch_count == 0) {
        kf_request_free(request);
        return NULL;
    }
    request->correlation_id = link->next_correlation_id++;
    kf_put_i32(request->framing, (int32_t)(request->size - 4));
    kf_put_i32(request->framing + 4, request->correlation_id);
    kf_put_i32(request->framing + 8, request->batch_count);
    return request;
}

/* ---- the turn ---- */

/* Look into the queues that have news: nothing else tells what a queue holds. */
static void look(sender *it) {
    kf_producer *producer = it->shared->producer;
    double opened;
    for (kf_queue *queue = kf_producer_take_inbox(producer); queue != NULL;
         queue = queue->taken_next) {
        it->has_news[queue->id] = true;
    }
    bool pressed = kf_get(&producer->flushing) > 0 || kf_get(&producer->pool.waiting) > 0;
    for (int i = 0; i < QUEUES; i++) {
        kf_queue *queue = &it->shared->queues[i];
        if (it->has_news[i] || (pressed && it->has_data[i])) {
            it->has_data[i] = kf_queue_look(queue, &it->urgency[i], &opened);
            it->has_data[i] = it->has_data[i] || queue->unresolved != NULL;
        }
        if (pressed) {
            it->urgency[i] = KF_URGENT;
        }
        it->has_news[i] = false;
    }
}

static bool is_lingering(const sender *it, int i) {
    const kf_queue *queue = &it->shared->queues[i];
    return it->has_data[i] && it->urgency[i] == KF_LINGERS && queue->unresolved == NULL;
}

/* Fill the link's window; returns who may end the sleep on its behalf. */
static int drain(sender *it, int index) {
    kf_link *link = it->links[index];
    int level = KF_WAKE_OPENED;
    while (link->produce_in_flight < WINDOW) {
        bool lingering[QUEUES];
        for (int i = index; i < QUEUES; i += LINKS) {
            lingering[i] = is_lingering(it, i);
            it->has_data[i] = it->has_data[i] && !lingering[i];
        }
        kf_request *request = build_request(it, index);
        for (int i = index; i < QUEUES; i += LINKS) {
            it->has_data[i] = it->has_data[i] || lingering[i];
            level = it->has_data[i] ? KF_WAKE_SENDABLE : level;
        }
        if (request == NULL) {
            return level;
        }
        kf_link_queue(link, request, it->shared->plane.env.now(NULL));
        look(it);
    }
    return KF_WAKE_NOBODY;
}

static int turn(sender *it) {
    int level = KF_WAKE_NOBODY;
    carry_out_commands(it);
    for (int i = 0; i < LINKS; i++) {
        if (!receive(it, it->links[i])) {
            hang_up(it, i);
        }
    }
    look(it);
    for (int i = 0; i < LINKS; i++) {
        kf_request *ended = NULL;
        int error = 0;
        int own = drain(it, i);
        level = own > level ? own : level;
        if (!kf_link_write(it->links[i], it->shared->plane.env.now(NULL), &ended, &error)) {
            hang_up(it, i);
        }
    }
    return level;
}

void *sender_main(void *argument) {
    sender it = {.shared = argument};
    kf_plane *plane = &it.shared->plane;
    it.random = it.shared->seed;
    for (int i = 0; i < LINKS; i++) {
        it.links[i] = connect_link(&it);
    }
    while (!kf_get(&it.shared->stopping)) {
        int level = turn(&it);
        kf_set(&plane->wake_level, level);
        kf_fence();
        if (!kf_plane_has_news(plane, level)) {
            struct pollfd fds[LINKS + 1] = {{it.shared->data_event, POLLIN, 0}};
            uint64_t drained;
            for (int i = 0; i < LINKS; i++) {
                bool writes = (kf_link_wants(it.links[i]) & KF_WANT_WRITE) != 0;
                short events = writes ? POLLIN | POLLOUT : POLLIN;
                fds[i + 1] = (struct pollfd){it.links[i]->fd, events, 0};
            }
            poll(fds, LINKS + 1, -1); /* forever: no timer hides a lost wake-up */
            if (fds[0].revents != 0 && read(fds[0].fd, &drained, sizeof drained) < 0) {
                fail("no event to read");
            }
        }
        kf_set(&plane->wake_level, KF_WAKE_NOBODY);
    }
    for (int i = 0; i < LINKS; i++) {
        if (it.links[i]->first != NULL) {
            fail("a request is left in the window");
        }
        it.links[i]->io.close(it.links[i]->io.context);
        kf_link_free(it.links[i]);
    }
    return NULL;
}

/* ---- the control plane ---- */

static kf_command *new_command(enum kf_produce_kind kind) {
    kf_command *command = kf_command_new(KF_SIDE_PRODUCE);
    command->produce.kind = kind;
    return command;
}

static void pass_verdict(harness *it, const kf_batch_row *row, enum kf_produce_kind kind) {
    kf_command *command = new_command(kind);
    kf_queue *queue = &it->queues[row->queue_id];
    kf_produce_command *verdict = &command->produce;
    if (kind == KF_COMMAND_COMPLETE_BATCH) {
        verdict->complete_batch = (kf_complete_batch){.queue = queue,
                                                      .generation = row->generation,
                                                      .serial = row->serial,
                                                      .slice = row->slice};
    } else if (kind == KF_COMMAND_SPLIT_BATCH) {
        verdict->split_batch = (kf_split_batch){.queue = queue,
                                                .generation = row->generation,
                                                .serial = row->serial,
                                                .slice = row->slice,
                                                .size = SPLIT_SIZE,
                                                .error_code = row->error_code};
    } else if (kind == KF_COMMAND_FAIL_BATCH) {
        verdict->fail_batch = (kf_fail_batch){.queue = queue,
                                              .generation = row->generation,
                                              .serial = row->serial,
                                              .slice = row->slice,
                                              .error_code = row->error_code};
    } else {
        verdict->renumber_queue = (kf_renumber_queue){.queue = queue,
                                                      .generation = row->generation,
                                                      .serial = row->serial,
                                                      .slice = row->slice,
                                                      .base_sequence = row->base_sequence};
    }
    kf_plane_command(&it->plane, command);
}

static void judge_report(harness *it, const kf_event *event) {
    const kf_queue_row *own = &event->queue_report.queue;
    const kf_batch_row *gap = NULL;
    for (int i = 0; i < event->queue_report.batches.count; i++) {
        const kf_batch_row *row = &event->queue_report.batches.items[i];
        if (row->error_code == ANSWER_DUPLICATE) {
            pass_verdict(it, row, KF_COMMAND_COMPLETE_BATCH);
        } else if (row->error_code == ANSWER_TOO_LARGE && row->record_count > 1) {
            pass_verdict(it, row, KF_COMMAND_SPLIT_BATCH);
        } else if (row->error_code == ANSWER_REJECTED) {
            pass_verdict(it, row, KF_COMMAND_FAIL_BATCH);
            gap = gap != NULL ? gap : row;
        }
    }
    if (gap != NULL) {
        pass_verdict(it, gap, KF_COMMAND_RENUMBER_QUEUE);
    }
    kf_command *thaw = new_command(KF_COMMAND_THAW_QUEUE);
    thaw->produce.thaw_queue.queue = &it->queues[own->queue_id];
    thaw->produce.thaw_queue.generation = own->generation;
    kf_plane_command(&it->plane, thaw);
}

void *control_main(void *argument) {
    harness *it = argument;
    while (!kf_get(&it->stopping)) {
        kf_event *event = kf_plane_take_events(&it->plane);
        if (event == NULL) {
            sleep_on(it->control_event, 100);
        }
        while (event != NULL) {
            kf_event *next = event->next;
            judge_report(it, event);
            kf_event_free(event);
            event = next;
        }
    }
    return NULL;
}
