// DTRAIN_VECTOR_CLONES marks a function that is compiled once for each generation of CPUs. Only a few
// functions need it.
#pragma once

// The dynamic loader chooses the clone when the program starts. At this time, the runtime of a sanitizer is
// not yet initialized, so builds with sanitizers compile the function only once.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DTRAIN_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define DTRAIN_VECTOR_CLONES
#endif
