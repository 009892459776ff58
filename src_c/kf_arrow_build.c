#include "kf_arrow_build.h"

#include <stdlib.h>
#include <string.h>

/* An array's own memory; `buffers` and `owned` follow it in the same block. */
typedef struct kf_array_memory {
    void *keeper; /* of borrowed buffers, or NULL */
    kf_arrow_drop drop;
    const void **buffers;
    void **owned; /* the buffers again, NULL where they are borrowed */
} kf_array_memory;

/* ---- schemas ---- */

static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i] != NULL) {
            kf_schema_release(schema->children[i]);
            free(schema->children[i]);
        }
    }
    if (schema->dictionary != NULL) {
        kf_schema_release(schema->dictionary);
        free(schema->dictionary);
    }
    free(schema->children);
    schema->release = NULL;
}

void kf_schema_release(struct ArrowSchema *schema) {
    if (schema->release != NULL) {
        schema->release(schema);
    }
}

bool kf_schema_open(struct ArrowSchema *schema, const char *format, const char *name, bool nullable,
                    int64_t n_children) {
    memset(schema, 0, sizeof *schema);
    if (n_children > 0) {
        schema->children = calloc((size_t)n_children, sizeof *schema->children);
        if (schema->children == NULL) {
            return false;
        }
    }
    schema->format = format;
    schema->name = name;
    schema->flags = nullable ? KF_ARROW_NULLABLE : 0;
    schema->n_children = n_children;
    schema->release = release_schema;
    for (int64_t i = 0; i < n_children; i++) {
        schema->children[i] = calloc(1, sizeof **schema->children);
        if (schema->children[i] == NULL) {
            release_schema(schema);
            return false;
        }
    }
    return true;
}

struct ArrowSchema *kf_schema_dictionary(struct ArrowSchema *schema) {
    schema->dictionary = calloc(1, sizeof *schema->dictionary);
    return schema->dictionary;
}

/* ---- arrays ---- */

static void release_array(struct ArrowArray *array) {
    kf_array_memory *memory = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i] != NULL) {
            kf_array_release(array->children[i]); /* a child that was moved away has no release */
            free(array->children[i]);
        }
    }
    if (array->dictionary != NULL) {
        kf_array_release(array->dictionary);
        free(array->dictionary);
    }
    for (int64_t i = 0; i < array->n_buffers; i++) {
        free(memory->owned[i]);
    }
    if (memory->drop != NULL) {
        memory->drop(memory->keeper);
    }
    free(array->children);
    free(memory);
    array->release = NULL;
}

void kf_array_release(struct ArrowArray *array) {
    if (array->release != NULL) {
        array->release(array);
    }
}

bool kf_array_open(struct ArrowArray *array, int64_t length, int64_t n_buffers,
                   int64_t n_children) {
    memset(array, 0, sizeof *array);
    kf_array_memory *memory = calloc(1, sizeof *memory + 2 * (size_t)n_buffers * sizeof(void *));
    if (memory == NULL) {
        return false;
    }
    memory->buffers = (const void **)(memory + 1);
    memory->owned = (void **)(memory + 1) + n_buffers;
    if (n_children > 0) {
        array->children = calloc((size_t)n_children, sizeof *array->children);
        if (array->children == NULL) {
            free(memory);
            return false;
        }
    }
    array->length = length;
    array->n_buffers = n_buffers;
    array->n_children = n_children;
    array->buffers = memory->buffers;
    array->private_data = memory;
    array->release = release_array;
    for (int64_t i = 0; i < n_children; i++) {
        array->children[i] = calloc(1, sizeof **array->children);
        if (array->children[i] == NULL) {
            release_array(array);
            return false;
        }
    }
    return true;
}

void *kf_array_buffer(struct ArrowArray *array, int64_t index, size_t size) {
    kf_array_memory *memory = array->private_data;
    size_t whole = size / KF_ARROW_ALIGNMENT * KF_ARROW_ALIGNMENT + KF_ARROW_ALIGNMENT;
    memory->owned[index] = aligned_alloc(KF_ARROW_ALIGNMENT, whole);
    memory->buffers[index] = memory->owned[index];
    return memory->owned[index];
}

void kf_array_lend(struct ArrowArray *array, int64_t index, const void *data) {
    kf_array_memory *memory = array->private_data;
    memory->buffers[index] = data;
}

void kf_array_keep(struct ArrowArray *array, void *keeper, kf_arrow_drop drop) {
    kf_array_memory *memory = array->private_data;
    memory->keeper = keeper;
    memory->drop = drop;
}

struct ArrowArray *kf_array_dictionary(struct ArrowArray *array) {
    array->dictionary = calloc(1, sizeof *array->dictionary);
    return array->dictionary;
}
