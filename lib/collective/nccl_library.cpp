// Defines the NCCL functions that dtrain uses. Each function forwards its call to the NCCL library that is
// opened at run time. To use another function, add a line here (otherwise the linker reports it as
// undefined).
#include "collective/nccl_library.h"

#include <nccl.h>

#include "base/error.h"
#include "device/cuda/library.h"
#include "device/cuda/version.h"

namespace {

using dtrain::cuda::Library;

/// Returns the library's version. The field for the CUDA version remains empty: NCCL does not report one, is
/// linked with its own CUDA runtime, and works with any CUDA version.
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

/// Unlike the other functions, returns an error instead of throwing if the library cannot be opened.
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
