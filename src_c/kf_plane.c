#include "kf_plane.h"
#include "kf_fetch.h"
#include "kf_producer.h"

#include <stdlib.h>
#include <string.h>

/* ---- making and freeing ---- */

void kf_plane_init(kf_plane *plane, const kf_env *env) {
    memset(plane, 0, sizeof *plane);
    plane->env = *env;
    kf_mutex_init(&plane->lock);
    kf_wake_init(&plane->wake);
    plane->commands_tail = &plane->commands;
    plane->events_tail = &plane->events;
}

void kf_plane_destroy(kf_plane *plane) {
    if (plane->fetcher != NULL) {
        kf_fetcher_free(plane->fetcher);
    }
    for (kf_command *command = kf_plane_take_commands(plane); command != NULL;) {
        kf_command *next = command->next;
        kf_command_free(command);
        command = next;
    }
    for (kf_event *event = kf_plane_take_events(plane); event != NULL;) {
        kf_event *next = event->next;
        kf_event_free(event);
        event = next;
    }
    for (kf_node *node = plane->nodes; node != NULL;) {
        kf_node *next = node->next;
        free(node);
        node = next;
    }
    if (plane->producer != NULL) {
        kf_producer_free(plane->producer);
    }
    kf_wake_destroy(&plane->wake);
    kf_mutex_destroy(&plane->lock);
}

/* ---- waking the data plane ---- */

void kf_plane_wake(kf_plane *plane, int level) {
    kf_fence(); /* what was published before must be seen by a data plane that goes to sleep */
    int32_t now = kf_get(&plane->wake_level);
    while (now >= level) {
        /* Only one caller ends this sleep. A plain swap would not do: the sleep that was seen may
         * be over, and the level of the next one may not be ours to clear. */
        if (kf_change(&plane->wake_level, &now, KF_WAKE_NOBODY)) {
            plane->env.wake_data(plane->env.context);
            return;
        }
    }
}

void kf_plane_wake_users(kf_plane *plane) {
    if (kf_wake_raise(&plane->wake)) {
        plane->env.wake_observers(plane->env.context);
    }
}

bool kf_plane_has_news(kf_plane *plane, int level) {
    kf_lock(&plane->lock);
    bool news = plane->commands != NULL;
    kf_unlock(&plane->lock);
    return news || (plane->producer != NULL && kf_producer_has_news(plane->producer, level));
}

/* ---- commands down, events up ---- */

kf_command *kf_command_new(enum kf_side side) {
    kf_command *command = kf_must(calloc(1, sizeof *command));
    command->side = side;
    return command;
}

void kf_command_free(kf_command *command) {
    kf_command_release(command);
    free(command);
}

void kf_plane_refuse(kf_plane *plane, const kf_command *command, int kind) {
#ifdef KF_DEBUG
    (void)plane, (void)command, (void)kind;
    abort();
#else
    kf_event *event = kf_event_new(KF_EVENT_UNKNOWN_COMMAND);
    event->unknown_command.side = (int32_t)command->side;
    event->unknown_command.kind = kind;
    kf_plane_event(plane, event);
#endif
}

void kf_plane_command(kf_plane *plane, kf_command *command) {
    command->next = NULL;
    kf_lock(&plane->lock);
    *plane->commands_tail = command;
    plane->commands_tail = &command->next;
    kf_unlock(&plane->lock);
    /* Commands end any sleep, also one that nobody else may end. */
    kf_swap(&plane->wake_level, KF_WAKE_NOBODY);
    plane->env.wake_data(plane->env.context);
}

kf_command *kf_plane_take_commands(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_command *taken = plane->commands;
    plane->commands = NULL;
    plane->commands_tail = &plane->commands;
    kf_unlock(&plane->lock);
    return taken;
}

void kf_plane_event(kf_plane *plane, kf_event *event) {
    event->next = NULL;
    kf_lock(&plane->lock);
    *plane->events_tail = event;
    plane->events_tail = &event->next;
    kf_unlock(&plane->lock);
    plane->env.wake_control(plane->env.context);
}

kf_event *kf_plane_take_events(kf_plane *plane) {
    kf_lock(&plane->lock);
    kf_event *taken = plane->events;
    plane->events = NULL;
    plane->events_tail = &plane->events;
    kf_unlock(&plane->lock);
    return taken;
}

void kf_plane_set_alive(kf_plane *plane, double until) {
    kf_lock(&plane->lock);
    plane->alive_until = until;
    kf_unlock(&plane->lock);
}

double kf_plane_alive(kf_plane *plane) {
    kf_lock(&plane->lock);
    double until = plane->alive_until;
    kf_unlock(&plane->lock);
    return until;
}

/* ---- nodes ---- */

kf_node *kf_plane_node(kf_plane *plane, int32_t id) {
    for (kf_node *node = plane->nodes; node != NULL; node = node->next) {
        if (node->id == id) {
            return node;
        }
    }
    kf_node *node = kf_must(calloc(1, sizeof *node));
    node->id = id;
    kf_lock(&plane->lock); /* readers walk the list under it */
    node->next = plane->nodes;
    plane->nodes = node;
    kf_unlock(&plane->lock);
    return node;
}

void kf_histogram_add(kf_histogram *histogram, double value, double unit) {
    int bucket = 0;
    double bound = unit;
    while (value >= bound && bucket < KF_HISTOGRAM_BUCKETS - 1) {
        bound *= 2;
        bucket++;
    }
    kf_count(&histogram->buckets[bucket], 1);
    kf_count(&histogram->count, 1);
    kf_sum_up(&histogram->sum, value / unit);
}
