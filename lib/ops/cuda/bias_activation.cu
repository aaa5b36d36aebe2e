#include "ops/cuda/bias_activation.h"
#include "ops/cuda/vector.h"
#include "ops/math/activations.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct BiasActivation {
  T* rows;
  const T* bias;
  int64_t columns;
  ActivationSpec spec;

  /// N divides the number of columns, so N consecutive elements belong to one row.
  template <int N>
  struct Loaded {
    float values[N], biases[N];
  };
  template <int N>
  __device__ Loaded<N> read(int64_t i) const {
    Loaded<N> loaded;
    load(rows + i, loaded.values);
    load(bias + divide(i, columns).rest, loaded.biases);
    return loaded;
  }
  template <int N>
  __device__ void finish(int64_t i, Loaded<N> loaded) const {
    math::with_activation(spec, [&](auto activation) {
#pragma unroll
      for (int j = 0; j < N; ++j) loaded.values[j] = activation.forward(loaded.values[j] + loaded.biases[j]);
    });
    store(rows + i, loaded.values);
  }
};

}  // namespace

void bias_activation(CudaOps& ops, const ActivationSpec& spec, const void* bias, void* array, int64_t rows,
                     int64_t columns) {
  with_type(ops.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    const BiasActivation<T> body{static_cast<T*>(array), static_cast<const T*>(bias), columns, spec};
    const bool vectors = columns % kVector<T> == 0 && all_aligned(body.rows, body.bias);
    for_each<kVector<T>>(ops.context(), rows * columns, vectors, body);
  });
}

}  // namespace dtrain::cuda
