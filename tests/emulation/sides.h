// The same operation on the CPU and on the emulated GPU, with the same arrays.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/emulation.h"
#include "emulation/numbers.h"
#include "ops/ops.h"

namespace dtrain::emulation {

using Floats = std::vector<float>;

/// Uniform in [-scale, scale), the same for the same seed.
Floats random_floats(int64_t n, uint64_t seed, float scale = 1);

/// One device: arrays are made of host values, and results are read back when the work is done.
class Side {
 public:
  /// `shift`: arrays begin so many elements after an address that is aligned.
  Side(Ops& ops, Number rounded, int64_t shift) : ops_(ops), rounded_(rounded), shift_(shift) {}

  Ops& ops() const { return ops_; }

  /// Of the compute type, rounded alike on both sides; `result`: its values afterwards are compared.
  void* values(const Floats& values, bool result = false);
  float* f32(const Floats& values, bool result = false);
  double* f64(const std::vector<double>& values, bool result = false);
  template <class T>
  T* raw(const std::vector<T>& values) {
    return static_cast<T*>(make(values.data(), values.size() * sizeof(T), sizeof(T)));
  }
  /// What is written and compared.
  void* out(int64_t n) { return values(Floats(static_cast<size_t>(n), kUnwritten), true); }
  float* out_f32(int64_t n) { return f32(Floats(static_cast<size_t>(n), kUnwritten), true); }
  void* scratch(size_t bytes) { return make(nullptr, bytes, 1); }

  std::vector<std::vector<double>> results();
  /// The bytes of the results.
  std::vector<std::vector<std::byte>> bits();

 private:
  static constexpr float kUnwritten = -123;
  struct Result {
    const void* data;
    size_t count;
    char kind;  // compute type, float, double
  };

  void* make(const void* values, size_t bytes, size_t element);
  size_t element_bytes(char kind) const;
  std::vector<std::byte> read(const Result& result);

  Ops& ops_;
  Number rounded_;
  int64_t shift_;
  std::vector<Buffer> buffers_;
  std::vector<Result> results_;
};

struct Comparison {
  float tolerance = 1e-5f;  // of float32, relative to the larger of 1 and the value
  std::vector<int64_t> shifts = {0, 1};
  bool deterministic = true;
  double rounding = 2;  // roundings of the compute type that a result has gone through
};

/// Runs it on the CPU in float32, and on an emulated GPU with each compute type; checks that the results are
/// close, and the same bits when it is run again.
void compare(const std::function<void(Side&)>& run, const Comparison& how = {});

}  // namespace dtrain::emulation
