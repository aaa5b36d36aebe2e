// Sequence masks.
#include <algorithm>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

void CpuOps::mask_of_indices(const int32_t* indices, uint8_t* mask, int64_t n) {
  parallel(threads_, n, 64, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) mask[i] = indices[i] != 0;
  });
}

void CpuOps::mask_rows(const void* src, float value, void* dst, uint8_t* mask, int64_t rows,
                       int64_t columns) {
  parallel(threads_, rows, 1, columns, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* const from = f32(src) + r * columns;
      mask[r] = std::any_of(from, from + columns, [value](float element) { return element != value; });
    }
  });
  apply_mask(src, mask, dst, rows, columns);
}

void CpuOps::apply_mask(const void* src, const uint8_t* mask, void* dst, int64_t rows, int64_t columns) {
  parallel(threads_, rows, 1, columns, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* const to = f32(dst) + r * columns;
      if (!mask[r]) {
        std::fill_n(to, columns, 0.0f);
      } else if (src != dst) {
        std::copy_n(f32(src) + r * columns, columns, to);
      }
    }
  });
}

void CpuOps::masked_average(const MaskedAverageSpec& spec, const void* src, const uint8_t* mask, void* dst) {
  const int64_t features = spec.features;
  parallel(threads_, spec.samples, 1, spec.steps * features, [&](int64_t begin, int64_t end, int) {
    for (int64_t sample = begin; sample < end; ++sample) {
      const uint8_t* const valid = mask + sample * spec.steps;
      float* const mean = f32(dst) + sample * features;
      std::fill_n(mean, features, 0.0f);
      for (int64_t t = 0; t < spec.steps; ++t) {
        if (!valid[t]) continue;
        const float* const from = f32(src) + (sample * spec.steps + t) * features;
        for (int64_t i = 0; i < features; ++i) mean[i] += from[i];
      }
      const auto count = std::count(valid, valid + spec.steps, uint8_t{1});
      if (count == 0) continue;
      for (int64_t i = 0; i < features; ++i) mean[i] /= static_cast<float>(count);
    }
  });
}

void CpuOps::masked_average_backward(const MaskedAverageSpec& spec, const uint8_t* mask, const void* diff_dst,
                                     void* diff_src) {
  const int64_t features = spec.features;
  parallel(threads_, spec.samples, 1, spec.steps * features, [&](int64_t begin, int64_t end, int) {
    for (int64_t sample = begin; sample < end; ++sample) {
      const uint8_t* const valid = mask + sample * spec.steps;
      const auto count = static_cast<float>(std::count(valid, valid + spec.steps, uint8_t{1}));
      const float* const diff = f32(diff_dst) + sample * features;
      for (int64_t t = 0; t < spec.steps; ++t) {
        float* const to = f32(diff_src) + (sample * spec.steps + t) * features;
        for (int64_t i = 0; i < features; ++i) to[i] = valid[t] ? diff[i] / count : 0.0f;
      }
    }
  });
}

void CpuOps::mask_weights(const MaskWeightsArguments& args) {
  parallel(threads_, args.n, 64, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const float weight = args.weights ? args.weights[i / args.per_weight] : 1.0f;
      args.dst[i] = args.mask[i / args.per_mask] ? weight : 0.0f;
    }
  });
}

}  // namespace dtrain::cpu
