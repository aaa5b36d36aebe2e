// Defines the cuDNN functions that dtrain uses. Each function forwards its call to the cuDNN library that is
// opened at run time. To use another function, add a line here (otherwise the linker reports it as
// undefined).
#include <cublasLt.h>
#include <cudnn.h>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/library.h"
#include "device/cuda/version.h"

namespace {

using dtrain::cuda::Library;

Library::Identity identify_nvrtc(const Library& opened) {
  int major = 0, minor = 0;
  opened.find<int (*)(int*, int*)>("nvrtcVersion")(&major, &minor);
  return {dtrain::cuda::version_text(1000 * major + 10 * minor),
          dtrain::cuda::cuda_major_problem(1000 * major)};
}

Library::Identity identify_cudnn(const Library& opened) {
  const size_t version = opened.find<decltype(&::cudnnGetVersion)>("cudnnGetVersion")();
  const size_t cuda_version = opened.find<decltype(&::cudnnGetCudartVersion)>("cudnnGetCudartVersion")();
  std::string problem = dtrain::cuda::cuda_major_problem(static_cast<int>(cuda_version));
  if (problem.empty() && version / 100 < CUDNN_VERSION / 100)
    problem = fmt::format("is older than version {}, for which this program was built",
                          dtrain::cuda::library_version_text(CUDNN_VERSION));
  return {dtrain::cuda::library_version_text(version), problem};
}

/// Opens cuBLASLt and NVRTC before cuDNN. cuDNN opens them by file name, and then gets the libraries that are
/// already open under these names. NVRTC compiles some of cuDNN's kernels; without NVRTC, cuDNN works but
/// cannot use these kernels.
void open_what_cudnn_needs() {
  cublasLtGetVersion();
  try {
    static const Library nvrtc("NVRTC", DTRAIN_NVRTC_NAME, DTRAIN_NVRTC_PATH, identify_nvrtc);
  } catch (const dtrain::Error&) {
  }
}

const Library& cudnn() {
  static const Library library = [] {
    open_what_cudnn_needs();
    return Library("cuDNN", DTRAIN_CUDNN_NAME, DTRAIN_CUDNN_PATH, identify_cudnn);
  }();
  return library;
}

}  // namespace

#define FORWARD(result, function, parameters, arguments) \
  DTRAIN_FORWARD(cudnn, result, function, parameters, arguments)

extern "C" {

FORWARD(size_t, cudnnGetVersion, (), ())
FORWARD(const char*, cudnnGetErrorString, (cudnnStatus_t status), (status))
FORWARD(void, cudnnGetLastErrorString, (char* message, size_t size), (message, size))

FORWARD(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * made), (made))
FORWARD(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle), (handle))
FORWARD(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream), (handle, stream))

FORWARD(cudnnStatus_t, cudnnBackendCreateDescriptor,
        (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made), (type, made))
FORWARD(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor), (descriptor))
FORWARD(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))
FORWARD(cudnnStatus_t, cudnnBackendSetAttribute,
        (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, int64_t elements, const void* array),
        (descriptor, name, type, elements, array))
FORWARD(cudnnStatus_t, cudnnBackendGetAttribute,
        (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, int64_t wanted, int64_t* elements, void* array),
        (descriptor, name, type, wanted, elements, array))
FORWARD(cudnnStatus_t, cudnnBackendExecute,
        (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variants),
        (handle, plan, variants))
}
