/* The null broker: answers a producer as Kafka does, and throws the records away; answers a
 * consumer from one record batch that it was given.
 *
 * It measures clients, so it must never be what is measured: record bytes are dropped in the kernel
 * (MSG_TRUNC) after the 61 bytes of the batch header were read. Any topic that is asked for exists,
 * with P partitions whose leaders go round the brokers (node ids 1 to N, a port each).
 *
 *   one thread per connection:  frame -> header -> handler -> answer
 *   main thread:                accepts, runs the commands of stdin, sends answers that were held
 *
 * Commands are lines on stdin, each answered by one line on stdout; end of file ends the process.
 * `tests/support/null_broker.py` starts it and speaks for it. wire.h: the encodings;
 * handlers.h, canned.h: the requests; state.h: what connections share.
 */

#include <getopt.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "canned.h"
#include "handlers.h"
#include "state.h"
#include "wire.h"

enum { MAX_FRAME = 256 << 20, LINE_SIZE = 512, KEPT_MEMORY = 1 << 30 };

/* ---- connections ---- */

static int16_t flexible_from(int16_t key) {
    switch (key) {
    case API_INIT_PRODUCER_ID:
        return 2;
    case API_VERSIONS:
        return 3;
    case API_LIST_OFFSETS:
        return 6;
    case API_FETCH:
        return 12;
    default:
        return 9;
    }
}

static bool read_header(struct stream *in, struct request *request) {
    char client_id[TOPIC_NAME_SIZE];
    int32_t size = stream_frame(in);
    if (in->bad || size < 8 || size > MAX_FRAME)
        return false;
    in->left = (size_t)size;
    request->key = get_i16(in);
    request->version = get_i16(in);
    request->correlation = get_i32(in);
    request->flexible = request->version >= flexible_from(request->key);
    get_string(in, client_id, sizeof client_id, false);
    get_tags(in, request->flexible);
    return !in->bad;
}

/* Answer one request; return false when the connection has to end. */
static bool serve_request(struct connection *connection) {
    struct stream *in = &connection->in;
    struct request request;
    struct out out = {0};
    bool wanted = true;
    if (!read_header(in, &request))
        return false;
    put_i32(&out, 0); /* the size, patched below */
    put_i32(&out, request.correlation);
    put_tags(&out, request.flexible && request.key != API_VERSIONS);
    if (request.key == API_VERSIONS)
        handle_api_versions(in, &request, &out);
    else if (request.key == API_METADATA && request.version <= 13)
        handle_metadata(in, &request, &out);
    else if (request.key == API_INIT_PRODUCER_ID && request.version <= 5)
        handle_init_producer_id(in, &request, &out);
    else if (request.key == API_PRODUCE && request.version >= PRODUCE_MIN &&
             request.version <= PRODUCE_MAX)
        wanted = handle_produce(in, &request, connection->node, &out);
    else if (request.key == API_FIND_COORDINATOR && request.version == 0)
        handle_find_coordinator(in, &request, &out);
    else if (request.key == API_LIST_OFFSETS && request.version >= LIST_OFFSETS_MIN &&
             request.version <= LIST_OFFSETS_MAX)
        handle_list_offsets(in, &request, connection->node, &out);
    else if (request.key == API_FETCH && request.version >= FETCH_MIN &&
             request.version <= FETCH_MAX)
        handle_fetch(in, &request, connection->node, &out);
    else
        in->bad = true;
    if (in->left != 0)
        in->bad = true; /* bytes that no field accounts for */
    if (in->bad) {
        free(out.data);
        return false;
    }
    if (!wanted) {
        free(out.data);
        return true;
    }
    patch_size(&out);
    return answer(connection, out);
}

static void *serve(void *argument) {
    struct connection *connection = argument;
    while (serve_request(connection))
        continue;
    forget_connection(connection);
    return NULL;
}

static void accept_one(int listener, int node) {
    pthread_t thread;
    int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *connection = new_connection(fd, node);
    if (pthread_create(&thread, NULL, serve, connection) != 0) {
        forget_connection(connection);
        return;
    }
    pthread_detach(thread);
}

/* ---- commands ---- */

static void print_ok(void) {
    puts("ok");
}

static void run_command(char *line) {
    char host[HOST_SIZE];
    int node, port, ms;
    long long records;
    if (strcmp(line, "stats") == 0)
        print_stats();
    else if (strcmp(line, "arrivals") == 0)
        print_arrivals();
    else if (sscanf(line, "await %lld", &records) == 1)
        await_records(records); /* answers when they are there */
    else if (strcmp(line, "stop reading") == 0)
        set_reading(false), print_ok();
    else if (strcmp(line, "resume reading") == 0)
        set_reading(true), print_ok();
    else if (strcmp(line, "hold answers") == 0)
        atomic_store(&state.hold, true), print_ok();
    else if (strcmp(line, "release answers") == 0)
        atomic_store(&state.hold, false), print_ok();
    else if (strcmp(line, "reset") == 0)
        reset_stats(), print_ok();
    else if (strcmp(line, "cut") == 0)
        cut_connections(), print_ok();
    else if (sscanf(line, "throttle %d", &ms) == 1)
        atomic_store(&state.throttle_ms, ms), print_ok();
    else if (sscanf(line, "delay %d", &ms) == 1)
        atomic_store(&state.delay_ns, (int64_t)ms * 1000000), print_ok();
    else if (sscanf(line, "advertise %d %255s %d", &node, host, &port) == 3 && node >= 1 &&
             node <= state.broker_count)
        set_address(node, host, port), print_ok();
    else
        printf("error: unknown command: %s\n", line);
    fflush(stdout);
}

/* Run every whole line that stdin holds; return false at its end. */
static bool read_commands(void) {
    static char text[LINE_SIZE];
    static size_t used;
    ssize_t got = read(STDIN_FILENO, text + used, sizeof text - used - 1);
    if (got <= 0)
        return false;
    used += (size_t)got;
    text[used] = 0;
    for (char *end; (end = strchr(text, '\n')) != NULL;) {
        *end = 0;
        run_command(text);
        used -= (size_t)(end + 1 - text);
        memmove(text, end + 1, used + 1);
    }
    return used < sizeof text - 1;
}

static int listen_on_loopback(struct broker *broker) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("listen");
        exit(1);
    }
    strcpy(broker->host, "127.0.0.1");
    broker->port = ntohs(address.sin_port);
    return fd;
}

static void parse_options(int argc, char **argv) {
    static const struct option options[] = {
        {"brokers", required_argument, NULL, 'b'},     {"partitions", required_argument, NULL, 'p'},
        {"produce-max", required_argument, NULL, 'v'}, {"check-crc", no_argument, NULL, 'c'},
        {"check-sequence", no_argument, NULL, 's'},    {"batch", required_argument, NULL, 'f'},
        {"copies", required_argument, NULL, 'n'},      {NULL, 0, NULL, 0},
    };
    for (int flag; (flag = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int value = optarg != NULL ? atoi(optarg) : 0;
        if (flag == 'b' && value >= 1 && value <= MAX_BROKERS)
            state.broker_count = value;
        else if (flag == 'p' && value >= 1 && value <= MAX_PARTITIONS)
            state.partition_count = value;
        else if (flag == 'v' && value >= PRODUCE_MIN && value <= PRODUCE_MAX)
            set_produce_max((int16_t)value);
        else if (flag == 'n' && value >= 0)
            set_copies(value);
        else if (flag == 'f' && load_batch(optarg))
            continue;
        else if (flag == 'c')
            state.check_crc = true;
        else if (flag == 's')
            state.check_sequence = true;
        else
            exit(2);
    }
}

int main(int argc, char **argv) {
    struct pollfd polled[2 + MAX_BROKERS] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    parse_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    /* Answers of megabytes come and go all the time: their memory is kept, not mapped anew. */
    mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
    mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    state.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    polled[1] = (struct pollfd){.fd = state.wake, .events = POLLIN};
    printf("ports");
    for (int i = 0; i < state.broker_count; i++) {
        polled[2 + i] =
            (struct pollfd){.fd = listen_on_loopback(&state.brokers[i]), .events = POLLIN};
        printf(" %d", state.brokers[i].port);
    }
    puts("");
    fflush(stdout);
    for (;;) {
        uint64_t wakes;
        int64_t wait = send_due_answers(monotonic_ns());
        struct timespec timeout = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        if (ppoll(polled, 2 + (nfds_t)state.broker_count, wait < 0 ? NULL : &timeout, NULL) < 0)
            continue;
        if (polled[1].revents != 0 && read(state.wake, &wakes, sizeof wakes) > 0)
            maybe_print_awaited();
        if (polled[0].revents != 0 && !read_commands())
            return 0;
        for (int i = 0; i < state.broker_count; i++)
            if (polled[2 + i].revents != 0)
                accept_one(polled[2 + i].fd, i + 1);
    }
}
