// DTRAIN_HOST_DEVICE marks functions that the host compiler and nvcc both compile, so that the math is
// written once. On the host these functions are always inlined: CPU kernels are compiled for several
// instruction sets, and an out-of-line copy compiled for one set must not be called on a CPU without it.
#pragma once

#if defined(__CUDACC__)
#define DTRAIN_HOST_DEVICE __host__ __device__
#else
#define DTRAIN_HOST_DEVICE [[gnu::always_inline]]
#endif
