#include "emulation/convolution.h"

#include <vector>

namespace dtrain::emulation {

namespace {

/// Computes the position in the source that element `k` of the kernel is multiplied with, for position `at`
/// in the destination, and stores it in `source`. Returns false if this position lies in the padding.
bool meets(const Operation& o, const std::array<int64_t, 3>& at, const std::array<int64_t, 3>& k,
           std::array<int64_t, 3>& source) {
  const auto& c = o.convolution;
  for (size_t i = 0; i < 3; ++i) {
    source[i] = at[i] * c.strides[i] + k[i] * c.dilations[i] - c.before[i];
    if (source[i] < 0 || source[i] >= o.x.dimensions[i + 2]) return false;
  }
  return true;
}

/// Calls use({z, y, x}) for all positions along a tensor's last three axes.
template <class Use>
void each_place(const Tensor& tensor, Use&& use) {
  for (int64_t z = 0; z < tensor.dimensions[2]; ++z)
    for (int64_t y = 0; y < tensor.dimensions[3]; ++y)
      for (int64_t x = 0; x < tensor.dimensions[4]; ++x) use(std::array{z, y, x});
}

/// Calls use(x, w, y) for every multiplication of a convolution, with the indices of the elements of x, w and
/// y that belong together: the product of two of these elements is added to the third.
template <class Use>
void each_product(const Operation& o, Use&& use) {
  const int64_t filters = o.w.dimensions[0], channels = o.w.dimensions[1];
  const int64_t groups = o.x.dimensions[1] / channels, per_group = filters / groups;
  for (int64_t n = 0; n < o.y.dimensions[0]; ++n)
    for (int64_t f = 0; f < filters; ++f)
      each_place(o.y, [&](const std::array<int64_t, 3>& at) {
        each_place(o.w, [&](const std::array<int64_t, 3>& k) {
          std::array<int64_t, 3> in{};
          if (!meets(o, at, k, in)) return;
          for (int64_t i = 0; i < channels; ++i)
            use(o.x.at(n, f / per_group * channels + i, in[0], in[1], in[2]), o.w.at(f, i, k[0], k[1], k[2]),
                o.y.at(n, f, at[0], at[1], at[2]));
        });
      });
}

}  // namespace

void convolve(const Operation& o, double error, const std::array<void*, 3>& arrays) {
  void *const x = arrays[0], *const w = arrays[1], *const y = arrays[2];
  const Number type = o.x.type;  // type of the operands; a gradient may have another type
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
