#!/usr/bin/env bash
# Say whether this machine can build and run a program under the sanitizers named in $1, as clang
# takes them (`thread`, `fuzzer,address`). The last line of output tells what is missing.
set -euo pipefail

sanitizers=$1
compiler=${CLANG:-clang}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

command -v "$compiler" > /dev/null || { echo "clang is not installed"; exit 1; }
cat > "$folder/probe.c" <<'SOURCE'
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *arg) {
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return arg;
}

static int run(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, add, NULL) != 0) {
        return 1;
    }
    add(NULL);
    pthread_join(thread, NULL);
    return count == 0;
}

#ifdef FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return data != NULL && size > 4096 ? run() : 0;
}
#else
int main(void) {
    return run();
}
#endif
SOURCE
options=(-g -O1 "-fsanitize=$sanitizers" -pthread)
arguments=()
case $sanitizers in
    *fuzzer*) options+=(-DFUZZER) arguments+=(-runs=10) ;;
esac
"$compiler" "${options[@]}" "$folder/probe.c" -o "$folder/probe" ||
    { echo "clang cannot link -fsanitize=$sanitizers: its runtime libraries are missing"; exit 1; }
"$folder/probe" "${arguments[@]}" ||
    { echo "a program under -fsanitize=$sanitizers does not run on this kernel"; exit 1; }
