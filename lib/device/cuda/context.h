// The streams, library handles and workspace that one worker has of one GPU.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <memory>
#include <optional>

#include "device/cpu/affinity.h"
#include "device/cuda/handle.h"
#include "device/device.h"

namespace dtrain::cuda {

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using EventHandle = Owned<cudaEvent_t, cudaEventDestroy>;

/// An event of a stream, which marks an order and takes no time.
class CudaEvent final : public Event {
 public:
  /// Made on the chosen device (chosen_device.h), whose stream `stream` is. `spin`: as of make_gpu_context().
  CudaEvent(cudaStream_t stream, bool spin);
  void record() override;
  void synchronize() override;
  void record_on(cudaStream_t stream);
  cudaEvent_t get() const { return event_.get(); }

 private:
  cudaStream_t stream_;
  int device_;
  EventHandle event_;
};

/// Three streams that do not wait for each other unless told to, the libraries' handles, and one workspace
/// that cuBLASLt and cuDNN share: only work on compute() may use it. Several contexts may be of one GPU.
class CudaContext : public Context {
 public:
  CudaContext(DeviceId device, bool deterministic, bool spin = true);
  ~CudaContext() override;
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  DeviceId device() const override { return device_; }
  int threads() const override { return 1; }
  void attach() override;
  void detach() override;
  Buffer allocate_host(size_t bytes) override;
  size_t free_bytes() override;
  void copy_to_device(void* dst, const void* src, size_t bytes) override;
  void copy_to_host(void* dst, const void* src, size_t bytes) override;
  void enqueue_copy(void* dst, const void* src, size_t bytes) override;
  void enqueue_zero(void* dst, size_t bytes) override;
  std::unique_ptr<Event> make_event() override;
  void wait(const Event& event) override;
  void upload(void* dst, const void* src, size_t bytes, const Event& consumed, Event& uploaded) override;
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override;
  void synchronize() override;
  std::string failure() override;

  /// The stream of the operations, in order.
  cudaStream_t compute() const { return compute_.get(); }
  /// The stream of batches on their way to the device.
  cudaStream_t copy() const { return copy_.get(); }
  /// The stream of reductions, beside the operations, which let them go first: other GPUs wait for them.
  cudaStream_t collective() const { return collective_.get(); }
  /// What is enqueued on collective() from now on waits for what is on compute() by now; and the other way
  /// round. Work that is captured must join what it forked.
  void fork_collective();
  void join_collective();

  // These are made when they are first asked for, which must not be while work is being captured.
  cublasLtHandle_t blas();
  /// Bound to compute().
  cudnnHandle_t dnn();
  void* workspace();
  size_t workspace_bytes() const override;

  int index() const { return device_.index; }
  bool deterministic() const { return deterministic_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Compute capability: 90 is 9.0.
  int capability() const { return capability_; }

 private:
  Buffer take(size_t bytes) override;
  void let_wait(cudaStream_t stream, const CudaEvent& event) const;
  void wait_for(cudaStream_t stream) const;
  void enqueue(void* dst, const void* src, size_t bytes, cudaStream_t stream) const;

  DeviceId device_;
  bool deterministic_, spin_;
  int multiprocessors_ = 0;
  int capability_ = 0;
  std::optional<cpu::BoundThread> near_;  // the attached thread, on the cores that are near the GPU
  Stream compute_, copy_, collective_;
  Stream health_;  // nothing is ever enqueued there: by it the GPU is asked whether it has failed
  std::unique_ptr<CudaEvent> forked_, joined_;
  Buffer workspace_;
  Owned<cublasLtHandle_t, cublasLtDestroy> blas_;
  Owned<cudnnHandle_t, cudnnDestroy> dnn_;
};

}  // namespace dtrain::cuda
