// The streams, library handles and workspace of one worker on one GPU.
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

/// A CUDA event that records no times. It is used only to order operations.
class CudaEvent final : public Event {
 public:
  /// Creates an event for `stream`, which must belong to the selected device (chosen_device.h). `spin`: see
  /// make_gpu_context().
  CudaEvent(cudaStream_t stream, bool spin);
  void record() override;
  void synchronize() override;
  bool has_completed() const noexcept override;
  std::string failure() const override;
  void record_on(cudaStream_t stream);
  cudaEvent_t get() const { return event_.get(); }

 private:
  cudaStream_t stream_;
  int device_;
  EventHandle event_;
};

/// Three independent streams, the library handles, and one workspace. cuBLASLt and cuDNN share the workspace,
/// so only operations on the stream compute() may use it. One GPU may have several contexts.
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

  /// Returns the stream on which operations run.
  cudaStream_t compute() const { return compute_.get(); }
  /// Returns the stream for uploads of batches.
  cudaStream_t copy() const { return copy_.get(); }
  /// Returns the stream for reductions. It has a higher priority than compute(), because other GPUs wait for
  /// the results of reductions.
  cudaStream_t collective() const { return collective_.get(); }
  /// fork_collective() makes later operations on collective() wait for the earlier operations on compute().
  /// join_collective() makes later operations on compute() wait for the earlier operations on collective(). A
  /// captured graph must join every stream that it has forked.
  void fork_collective();
  void join_collective();

  // The library handles and the workspace are created on first use. The first use must not be during a
  // capture.
  cublasLtHandle_t blas();
  /// The library handles are bound to compute().
  cudnnHandle_t dnn();
  void* workspace();
  size_t workspace_bytes() const override;

  int index() const { return device_.index; }
  bool deterministic() const { return deterministic_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Returns the compute capability; 90 is 9.0.
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
  std::optional<cpu::BoundThread> near_;  // binds the attached thread to the cores near the GPU
  Stream compute_, copy_, collective_;
  Stream health_;  // never has operations; it is queried to find out whether the GPU has failed
  std::unique_ptr<CudaEvent> forked_, joined_;
  Buffer workspace_;
  Owned<cublasLtHandle_t, cublasLtDestroy> blas_;
  Owned<cudnnHandle_t, cudnnDestroy> dnn_;
};

}  // namespace dtrain::cuda
