// The functions of cuDNN that are used. Another one is another line here; the linker names it.
#include <cudnn.h>

#include "device/cuda/library.h"

namespace {

const dtrain::cuda::Library& cudnn() {
  static const dtrain::cuda::Library library(DTRAIN_CUDNN_NAME, DTRAIN_CUDNN_PATH);
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
