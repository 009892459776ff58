/* Faults for the sanitizers to find, and what looks like one and is none: an extension module that
 * test_planted.py builds and calls. */
#define PY_SSIZE_T_CLEAN
#include "kf_sync.h"
#include <Python.h>
#include <stdlib.h>

enum { ROUNDS = 1000, BLOCK = 24 };

static int64_t plain;
static kf_counter counter;
static kf_atomic_long inside;
static kf_mutex first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

/* Return when two threads are here. Relaxed: it puts nothing in order, as the GIL would. */
static void meet(void) {
    kf_add_long(&inside, 1);
    while (atomic_load_explicit(&inside, memory_order_relaxed) < 2) {
        kf_relax();
    }
}

/* Two threads without the GIL write one plain number. */
static PyObject *race(PyObject *module, PyObject *args) {
    (void)module, (void)args;
    Py_BEGIN_ALLOW_THREADS;
    meet();
    for (int i = 0; i < ROUNDS; i++) {
        plain++;
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* One thread counts, the other reads: no race, the counter is a relaxed atomic. */
static PyObject *count(PyObject *module, PyObject *args) {
    int counts;
    (void)module;
    if (!PyArg_ParseTuple(args, "p", &counts)) {
        return NULL;
    }
    int64_t seen = 0;
    Py_BEGIN_ALLOW_THREADS;
    meet();
    for (int i = 0; i < ROUNDS; i++) {
        if (counts) {
            kf_count(&counter, 1);
        } else {
            seen = kf_counted(&counter);
        }
    }
    Py_END_ALLOW_THREADS;
    return PyLong_FromLongLong(seen);
}

/* Threads write a plain number in turns: no race, the GIL puts them in order. */
static PyObject *write_with_the_gil(PyObject *module, PyObject *args) {
    (void)module, (void)args;
    plain++;
    Py_RETURN_NONE;
}

/* Take two locks in either order, one after the other: a deadlock that did not come to pass. */
static PyObject *take_locks(PyObject *module, PyObject *args) {
    int turned;
    (void)module;
    if (!PyArg_ParseTuple(args, "p", &turned)) {
        return NULL;
    }
    kf_mutex *outer = turned ? &second : &first, *inner = turned ? &first : &second;
    kf_lock(outer);
    kf_lock(inner);
    kf_unlock(inner);
    kf_unlock(outer);
    Py_RETURN_NONE;
}

/* Write a block from end to end, and so many bytes more. */
static PyObject *write_block(PyObject *module, PyObject *args) {
    int more;
    (void)module;
    if (!PyArg_ParseTuple(args, "i", &more)) {
        return NULL;
    }
    volatile char *block = malloc(BLOCK);
    if (block == NULL) {
        return PyErr_NoMemory();
    }
    for (int i = 0; i < BLOCK + more; i++) {
        block[i] = 1;
    }
    free((void *)block);
    Py_RETURN_NONE;
}

/* Return the byte at `pos`, wherever that is; the byte behind the last one is CPython's zero. */
static PyObject *read_bytes(PyObject *module, PyObject *args) {
    const char *data;
    Py_ssize_t size, pos;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#n", &data, &size, &pos)) {
        return NULL;
    }
    return PyLong_FromLong(data[pos]);
}

/* Shift by so many bits; by more than an int has is undefined. */
static PyObject *shift(PyObject *module, PyObject *args) {
    int by;
    (void)module;
    if (!PyArg_ParseTuple(args, "i", &by)) {
        return NULL;
    }
    return PyLong_FromLong(1 << by);
}

static PyMethodDef methods[] = {
    {"race", race, METH_NOARGS, NULL},
    {"count", count, METH_VARARGS, NULL},
    {"write_with_the_gil", write_with_the_gil, METH_NOARGS, NULL},
    {"take_locks", take_locks, METH_VARARGS, NULL},
    {"write_block", write_block, METH_VARARGS, NULL},
    {"read_bytes", read_bytes, METH_VARARGS, NULL},
    {"shift", shift, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "planted", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_planted(void) {
    return PyModule_Create(&module);
}
