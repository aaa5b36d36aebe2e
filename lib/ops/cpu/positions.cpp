// Rotary and sinusoidal position embeddings.
#include "ops/math/positions.h"

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

constexpr int64_t kWorkOfAngle = 64;  // in elements: powers, cosines and sines are slow

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

void CpuOps::sinusoidal_positions(void* dst, int64_t positions, int64_t columns, double max_wavelength) {
  parallel(threads_, positions * columns, 1, kWorkOfAngle, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      f32(dst)[i] = math::sinusoidal_position(i / columns, i % columns, columns, max_wavelength);
  });
}

}  // namespace dtrain::cpu
