// Marks functions that both the host's compiler and nvcc compile, so that the maths is written once. On the
// host they are always inlined: the CPU's kernels are compiled for several instruction sets, and no function
// that one of them left behind may be called where that set does not exist.
#pragma once

#if defined(__CUDACC__)
#define DTRAIN_HOST_DEVICE __host__ __device__
#else
#define DTRAIN_HOST_DEVICE [[gnu::always_inline]]
#endif
