// DTRAIN_VECTOR_CLONES marks the few functions that are compiled once per CPU generation.
#pragma once

// The dynamic loader picks the clone at program start, before the runtime of a sanitizer is ready. Therefore
// builds with sanitizers have only the plain function.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DTRAIN_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define DTRAIN_VECTOR_CLONES
#endif
