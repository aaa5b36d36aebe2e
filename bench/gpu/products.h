// The matrix products of the dense layers in the wide-mlp workload.
#pragma once

#include <deque>

#include "bench.h"

namespace dtrain::bench {

/// The matrix products of one layer.
class DenseProducts {
 public:
  DenseProducts(Bench& bench, int64_t inputs, int64_t units, const ActivationSpec& activation, bool first);

  void forward();
  void by_kernel();
  void by_input();
  bool has_by_input() const { return by_input_ != nullptr; }

  const Buffer& diff_kernel() const { return diff_kernel_; }
  /// Returns the number of operations of each of the three products.
  double operations() const;

 private:
  int64_t inputs_, units_;
  std::unique_ptr<Matmul> forward_, by_kernel_, by_input_;
  Buffer input_, kernel_, bias_, output_, diff_output_, diff_input_, diff_kernel_, scratch_;
};

/// Returns the matrix products of all layers. They are in a deque, because a deque does not move its
/// elements.
std::deque<DenseProducts> wide_mlp(Bench& bench);

}  // namespace dtrain::bench
