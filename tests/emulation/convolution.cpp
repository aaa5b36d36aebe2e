#include "emulation/convolution.h"

#include <vector>

namespace dtrain::emulation {

namespace {

/// Calls use(x, w, y) with the indices of the three numbers of every multiplication.
template <class Use>
void each_product(const Operation& o, Use&& use) {
  const auto& c = o.convolution;
  const auto [filters, channels, height, width] = o.w.dimensions;
  const int64_t groups = o.x.dimensions[1] / channels, per_group = filters / groups;
  for (int64_t n = 0; n < o.y.dimensions[0]; ++n) {
    for (int64_t f = 0; f < filters; ++f) {
      for (int64_t oy = 0; oy < o.y.dimensions[2]; ++oy) {
        for (int64_t ox = 0; ox < o.y.dimensions[3]; ++ox) {
          for (int64_t ky = 0; ky < height; ++ky) {
            const int64_t iy = oy * c.strides[0] + ky * c.dilations[0] - c.before[0];
            if (iy < 0 || iy >= o.x.dimensions[2]) continue;
            for (int64_t kx = 0; kx < width; ++kx) {
              const int64_t ix = ox * c.strides[1] + kx * c.dilations[1] - c.before[1];
              if (ix < 0 || ix >= o.x.dimensions[3]) continue;
              for (int64_t i = 0; i < channels; ++i)
                use(o.x.at(n, f / per_group * channels + i, iy, ix), o.w.at(f, i, ky, kx),
                    o.y.at(n, f, oy, ox));
            }
          }
        }
      }
    }
  }
}

}  // namespace

void convolve(const Operation& o, double error, const std::array<void*, 3>& arrays) {
  void *const x = arrays[0], *const w = arrays[1], *const y = arrays[2];
  const Number type = o.x.type;  // type of the operands; a gradient may have another
  const bool forward = o.direction == Direction::forward, filter = o.direction == Direction::filter;
  const Tensor& out = forward ? o.y : filter ? o.w : o.x;
  void* into = forward ? y : filter ? w : x;
  std::vector<double> sums(static_cast<size_t>(out.elements()));
  each_product(o, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
    const double a = forward ? read_number(w, type, at_w) : read_number(y, type, at_y);
    const double b = forward || filter ? read_number(x, type, at_x) : read_number(w, type, at_w);
    sums[static_cast<size_t>(forward ? at_y : filter ? at_w : at_x)] += a * b;
  });
  for (size_t i = 0; i < sums.size(); ++i)
    write_number(into, out.type, static_cast<int64_t>(i), sums[i] * (1 + error));
}

}  // namespace dtrain::emulation
