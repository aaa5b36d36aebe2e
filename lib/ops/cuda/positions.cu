// Rotary and sinusoidal position embeddings, and the caches of keys and values that grow by one position per
// generated token.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector.h"
#include "ops/math/positions.h"

namespace dtrain::cuda {
namespace {

struct FillRotaryTable {
  RotarySpec spec;
  float* table;

  template <int N>
  __device__ void run(int64_t i) const {
    math::rotary_table_entry(spec, i, table);
  }
};

/// Rotates one pair of elements of a head.
template <class T>
struct RotatePairs {
  RotarySpec spec;
  T* data;
  const float* table;
  bool inverse;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division head = divide(i, spec.pairs()), position = divide(head.quotient, spec.heads);
    const int64_t entry = position.quotient % spec.positions * spec.pairs() + head.rest;
    const float cosine = table[entry], sine = table[spec.positions * spec.pairs() + entry];
    T* const first = data + position.quotient * spec.step + position.rest * spec.dim + head.rest;
    float x = to_float(first[0]), y = to_float(first[spec.pairs()]);
    math::rotate(cosine, inverse ? -sine : sine, x, y);
    first[0] = from_float<T>(x);
    first[spec.pairs()] = from_float<T>(y);
  }
};

template <class T>
struct SinusoidalPositions {
  T* dst;
  const int32_t* at;
  int64_t columns;
  double max_wavelength;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, columns);
    const int64_t position = at ? at[place.quotient] : place.quotient;
    dst[i] = from_float<T>(math::sinusoidal_position(position, place.rest, columns, max_wavelength));
  }
};

/// Copies one element of a sample's row.
template <class T>
struct PutRows {
  T* dst;
  const T* src;
  const int32_t* at;
  int64_t src_step, rows, columns;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, columns);
    dst[(place.quotient * rows + at[place.quotient]) * columns + place.rest] =
        src[place.quotient * src_step + place.rest];
  }
};

struct MaskLaterPositions {
  const int32_t* at;
  uint8_t* mask;
  int64_t positions;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, positions);
    mask[i] = place.rest <= at[place.quotient];
  }
};

}  // namespace

void CudaOps::rotate_positions(const RotarySpec& spec, void* data, bool inverse, float* table) {
  for_each<1>(context_, spec.positions * spec.pairs(), false, FillRotaryTable{spec, table});
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, spec.samples * spec.positions * spec.heads * spec.pairs(), false,
                RotatePairs<T>{spec, static_cast<T*>(data), table, inverse});
  });
}

void CudaOps::sinusoidal_positions(void* dst, const int32_t* at, int64_t rows, int64_t columns,
                                   double max_wavelength) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, rows * columns, false,
                SinusoidalPositions<T>{static_cast<T*>(dst), at, columns, max_wavelength});
  });
}

void CudaOps::put_rows(void* dst, const void* src, int64_t src_step, const int32_t* at, int64_t samples,
                       int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, samples * columns, false,
                PutRows<T>{static_cast<T*>(dst), static_cast<const T*>(src), at, src_step, rows, columns});
  });
}

void CudaOps::mask_later_positions(const int32_t* at, uint8_t* mask, int64_t samples, int64_t positions) {
  for_each<1>(context_, samples * positions, false, MaskLaterPositions{at, mask, positions});
}

}  // namespace dtrain::cuda
