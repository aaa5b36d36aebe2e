// Matrix products of the state and the recurrent kernel with recurrent dropout. The state is multiplied by
// different factors for each gate, so each gate needs a separate matrix product. The products read aligned
// copies of the operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/recurrence_steps.h"
#include "ops/recurrence.h"

namespace dtrain::cuda {

/// Divides memory into arrays, each aligned to 256 bytes.
class ArrayPlaces {
 public:
  size_t add(int64_t n, size_t element) {
    const size_t offset = bytes_;
    bytes_ += (static_cast<size_t>(n) * element + 255) / 256 * 256;
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

template <class E>
E* at(std::byte* memory, size_t offset) {
  return reinterpret_cast<E*>(memory + offset);
}
template <class E>
const E* at(const std::byte* memory, size_t offset) {
  return reinterpret_cast<const E*>(memory + offset);
}

/// Multiplies the state by the columns of the recurrent kernel for the first `gates` gates. `factors` are
/// [batch, spec.gates() * units]. Arrays with the gates of a step are [batch, gates * units].
template <class T>
class GateProducts {
 public:
  GateProducts(CudaOps& ops, const RecurrenceSpec& spec, int64_t gates, ArrayPlaces& scratch)
      : ops_(ops), spec_(spec), gates_(gates), n_(spec.batch * spec.units) {
    const int64_t units = spec.units, all = spec.batch * spec.steps;
    for (int64_t gate = 0; gate < gates; ++gate) kernels_[gate] = scratch.add(units * units, sizeof(T));
    operand_ = scratch.add((spec.training ? all : spec.batch) * units, sizeof(T));
    product_ = scratch.add(n_, sizeof(float));
    by_kernel_ =
        ops.matmul({.m = spec.batch, .n = units, .k = units, .float32_result = true, .activation = {}});
    if (!spec.training) return;
    gradients_ = scratch.add(all * units, sizeof(T));
    of_kernel_ = scratch.add(units * units, sizeof(float));
    by_transposed_ = ops.matmul({.m = spec.batch,
                                 .n = units,
                                 .k = units,
                                 .transpose_b = true,
                                 .float32_result = true,
                                 .activation = {}});
    by_states_ = ops.matmul(
        {.m = units, .n = units, .k = all, .transpose_a = true, .float32_result = true, .activation = {}});
  }

  /// Copies the columns of each gate to a separate matrix. Must be called before the functions below, which
  /// read these matrices.
  void split_kernel(const void* kernel, std::byte* scratch) {
    const int64_t units = spec_.units;
    for (int64_t gate = 0; gate < gates_; ++gate)
      each(units * units, CopyColumns<T>{static_cast<const T*>(kernel) + gate * units,
                                         at<T>(scratch, kernels_[gate]), units, columns(), units});
  }

  /// For each gate, multiplies the state elementwise by the factors of the gate, multiplies the result by the
  /// gate's part of the recurrent kernel, and writes the product to the gate's columns of `sums`.
  void forward(const T* state, const void* factors, float* sums, std::byte* scratch) {
    const int64_t units = spec_.units;
    T* const operand = at<T>(scratch, operand_);
    float* const product = at<float>(scratch, product_);
    for (int64_t gate = 0; gate < gates_; ++gate) {
      multiply(state, factors, gate, n_, operand);
      by_kernel_->run(operand, at<T>(scratch, kernels_[gate]), nullptr, product, nullptr);
      each(n_, CopyColumns<float>{product, sums + gate * units, units, units, gates_ * units});
    }
  }

  /// Writes one part of the gradient of the state to diff_state: the part that passes through these matrix
  /// products.
  void backward(const T* diff_sums, const void* factors, float* diff_state, std::byte* scratch) {
    const int64_t units = spec_.units;
    T* const operand = at<T>(scratch, operand_);
    float* const product = at<float>(scratch, product_);
    for (int64_t gate = 0; gate < gates_; ++gate) {
      each(n_, CopyColumns<T>{diff_sums + gate * units, operand, units, gates_ * units, units});
      by_transposed_->run(operand, at<T>(scratch, kernels_[gate]), nullptr, product, nullptr);
      each(n_, AddTimesFactors<T>{product, of_gate(factors, gate), diff_state, units, columns(), gate > 0});
    }
  }

  /// Writes the gradient of the recurrent kernel, gate by gate. `states` holds the state before each step,
  /// [steps, batch, units]. `diff_sums` holds the gradients of the gates' pre-activations, [steps, batch,
  /// gates * units].
  void kernel_gradient(const T* states, const T* diff_sums, const void* factors, float* diff_kernel,
                       std::byte* scratch) {
    const int64_t units = spec_.units, all = spec_.steps * n_;
    T *const operand = at<T>(scratch, operand_), *const gradients = at<T>(scratch, gradients_);
    float* const result = at<float>(scratch, of_kernel_);
    for (int64_t gate = 0; gate < gates_; ++gate) {
      multiply(states, factors, gate, all, operand);
      each(all, CopyColumns<T>{diff_sums + gate * units, gradients, units, gates_ * units, units});
      by_states_->run(operand, gradients, nullptr, result, nullptr);
      each(units * units, CopyColumns<float>{result, diff_kernel + gate * units, units, units, columns()});
    }
  }

 private:
  int64_t columns() const { return spec_.gates() * spec_.units; }
  const T* of_gate(const void* factors, int64_t gate) const {
    return static_cast<const T*>(factors) + gate * spec_.units;
  }

  template <class Body>
  void each(int64_t n, const Body& body) {
    for_each<1>(ops_.context(), n, false, body);
  }

  void multiply(const T* states, const void* factors, int64_t gate, int64_t n, T* dst) {
    each(n, TimesFactors<T>{states, of_gate(factors, gate), dst, spec_.batch, spec_.units, columns()});
  }

  CudaOps& ops_;
  RecurrenceSpec spec_;
  int64_t gates_, n_;  // n_ is the number of elements of a state
  // Offsets in scratch memory.
  size_t kernels_[4] = {};  // kernels of the gates, each [units, units]
  size_t operand_ = 0, product_ = 0, gradients_ = 0, of_kernel_ = 0;
  std::unique_ptr<Matmul> by_kernel_, by_transposed_, by_states_;
};

}  // namespace dtrain::cuda
