// The functions of NCCL that are used. Another one is another line here; the linker names it.
#include "collective/nccl_library.h"

#include <nccl.h>

#include "base/error.h"
#include "device/cuda/library.h"
#include "device/cuda/version.h"

namespace {

using dtrain::cuda::Library;

/// NCCL does not tell which CUDA it is for; it brings its own runtime, and goes with any.
Library::Identity identify(const Library& opened) {
  int version = 0;
  opened.find<decltype(&::ncclGetVersion)>("ncclGetVersion")(&version);
  return {dtrain::cuda::library_version_text(static_cast<size_t>(version)), ""};
}

const Library& nccl() {
  static const Library library("NCCL", DTRAIN_NCCL_NAME, DTRAIN_NCCL_PATH, identify);
  return library;
}

}  // namespace

std::string dtrain::nccl_path() {
  return nccl().path();
}

#define FORWARD(result, function, parameters, arguments) \
  DTRAIN_FORWARD(nccl, result, function, parameters, arguments)

extern "C" {

/// That it cannot be opened is an answer here.
ncclResult_t ncclGetVersion(int* version) try {
  static const auto found = nccl().find<decltype(&::ncclGetVersion)>("ncclGetVersion");
  return found(version);
} catch (const dtrain::Error&) {
  return ncclSystemError;
}
FORWARD(const char*, ncclGetErrorString, (ncclResult_t status), (status))

FORWARD(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id), (id))
FORWARD(ncclResult_t, ncclGroupStart, (), ())
FORWARD(ncclResult_t, ncclGroupEnd, (), ())
FORWARD(ncclResult_t, ncclCommInitRank, (ncclComm_t * made, int size, ncclUniqueId id, int rank),
        (made, size, id, rank))
FORWARD(ncclResult_t, ncclCommDestroy, (ncclComm_t communicator), (communicator))
FORWARD(ncclResult_t, ncclCommAbort, (ncclComm_t communicator), (communicator))
FORWARD(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t communicator, ncclResult_t* found_error),
        (communicator, found_error))

FORWARD(ncclResult_t, ncclAllReduce,
        (const void* src, void* dst, size_t n, ncclDataType_t type, ncclRedOp_t operation,
         ncclComm_t communicator, cudaStream_t stream),
        (src, dst, n, type, operation, communicator, stream))
FORWARD(ncclResult_t, ncclBroadcast,
        (const void* src, void* dst, size_t n, ncclDataType_t type, int root, ncclComm_t communicator,
         cudaStream_t stream),
        (src, dst, n, type, root, communicator, stream))
FORWARD(ncclResult_t, ncclReduce,
        (const void* src, void* dst, size_t n, ncclDataType_t type, ncclRedOp_t operation, int root,
         ncclComm_t communicator, cudaStream_t stream),
        (src, dst, n, type, operation, root, communicator, stream))
}
