// Replaces the library of the CUDA driver on machines that have none. This replacement has no device, and
// accepts every compiled kernel. cuDNN compiles the kernels of some plans at run time, and needs the driver's
// library to create these plans.
using Status = int;
constexpr Status kSuccess = 0, kNoDevice = 100, kNotSupported = 801;

extern "C" {

Status cuInit(unsigned) {
  return kNoDevice;
}
Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Status cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}
static int accepted;  // any address
Status cuLibraryLoadData(void** library) {
  *library = &accepted;
  return kSuccess;
}
Status cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = &accepted;
  return kSuccess;
}
Status cuLibraryUnload(void*) {
  return kSuccess;
}
Status cuGetErrorName(Status, const char** text) {
  *text = "an error of the replaced driver";
  return kSuccess;
}
Status cuGetErrorString(Status status, const char** text) {
  return cuGetErrorName(status, text);
}

// cuDNN looks these functions up, but does not call them.
#define UNUSED(name)      \
  Status name() {         \
    return kNotSupported; \
  }
UNUSED(cuLaunchKernel)
UNUSED(cuLaunchCooperativeKernel)
UNUSED(cuLaunchKernelEx)
UNUSED(cuLinkCreate)
UNUSED(cuLinkCreate_v2)
UNUSED(cuLinkAddData)
UNUSED(cuLinkAddData_v2)
UNUSED(cuLinkAddFile_v2)
UNUSED(cuLinkComplete)
UNUSED(cuLinkDestroy)
UNUSED(cuDeviceGet)
UNUSED(cuDeviceGetAttribute)
UNUSED(cuDevicePrimaryCtxRetain)
UNUSED(cuDevicePrimaryCtxReset)
UNUSED(cuDevicePrimaryCtxRelease)
UNUSED(cuCtxGetCurrent)
UNUSED(cuCtxGetDevice)
UNUSED(cuCtxGetLimit)
UNUSED(cuCtxPushCurrent)
UNUSED(cuCtxPopCurrent)
UNUSED(cuStreamGetCtx)
UNUSED(cuStreamSynchronize)
UNUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
UNUSED(cuOccupancyMaxPotentialClusterSize)
UNUSED(cuLibraryLoadFromFile)
UNUSED(cuKernelGetAttribute)
UNUSED(cuKernelSetAttribute)
UNUSED(cuModuleLoadData)
UNUSED(cuModuleLoadDataEx)
UNUSED(cuModuleLoadFatBinary)
UNUSED(cuModuleUnload)
UNUSED(cuModuleGetFunction)
UNUSED(cuModuleGetGlobal_v2)
UNUSED(cuMemcpyDtoH_v2)
UNUSED(cuFuncGetAttribute)
UNUSED(cuFuncSetAttribute)
UNUSED(cuTensorMapEncodeTiled)
}
