// Rotary and sinusoidal position embeddings, and the caches of keys and values that grow by one position per
// generated token.
#include "ops/math/positions.h"

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

// Computing the sine and cosine of one angle, and the power that the angle needs, is slow: it takes about as
// long as processing this number of elements in a simple loop.
constexpr int64_t kWorkOfAngle = 64;

}  // namespace

void CpuOps::rotate_positions(const RotarySpec& spec, void* data, bool inverse, float* table) {
  const int64_t pairs = spec.pairs(), entries = spec.positions * pairs;
  parallel(threads_, entries, 1, kWorkOfAngle, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) math::rotary_table_entry(spec, i, table);
  });
  parallel(threads_, spec.samples * spec.positions, 1, spec.heads * spec.dim,
           [&](int64_t begin, int64_t end, int) {
             for (int64_t row = begin; row < end; ++row) {
               const float *const cosines = table + row % spec.positions * pairs, *const sines =
                                                                                      cosines + entries;
               for (int64_t h = 0; h < spec.heads; ++h) {
                 float *const x = f32(data) + row * spec.step + h * spec.dim, *const y = x + pairs;
                 for (int64_t i = 0; i < pairs; ++i)
                   math::rotate(cosines[i], inverse ? -sines[i] : sines[i], x[i], y[i]);
               }
             }
           });
}

void CpuOps::sinusoidal_positions(void* dst, const int32_t* at, int64_t rows, int64_t columns,
                                  double max_wavelength) {
  parallel(threads_, rows * columns, 1, kWorkOfAngle, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / columns;
      f32(dst)[i] = math::sinusoidal_position(at ? at[row] : row, i % columns, columns, max_wavelength);
    }
  });
}

void CpuOps::put_rows(void* dst, const void* src, int64_t src_step, const int32_t* at, int64_t samples,
                      int64_t rows, int64_t columns) {
  each_row(samples, columns, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      std::copy_n(f32(src) + s * src_step, columns, f32(dst) + (s * rows + at[s]) * columns);
  });
}

void CpuOps::mask_later_positions(const int32_t* at, uint8_t* mask, int64_t samples, int64_t positions) {
  each_row(samples, positions, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      for (int64_t j = 0; j < positions; ++j) mask[s * positions + j] = j <= at[s];
  });
}

}  // namespace dtrain::cpu
