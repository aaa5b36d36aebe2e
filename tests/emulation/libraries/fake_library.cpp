// A fake NVIDIA library. The build defines its version. It replaces cuDNN, cuBLASLt and NVRTC. If FAKE_CUDNN
// is 0, it lacks cudnnGetVersion().
#include <cstddef>
#include <cuda_runtime_api.h>
#include <cudnn_version.h>

extern "C" {

size_t cublasLtGetVersion() {
  return 130100;
}
size_t cublasLtGetCudartVersion() {
  return FAKE_CUDA;
}
#if FAKE_CUDNN
size_t cudnnGetVersion() {
  return FAKE_CUDNN;
}
#endif
size_t cudnnGetCudartVersion() {
  return FAKE_CUDA;
}
int nvrtcVersion(int* major, int* minor) {
  *major = FAKE_CUDA / 1000;
  *minor = FAKE_CUDA % 1000 / 10;
  return 0;
}
}
