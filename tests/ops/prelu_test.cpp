// Compares PReLU and its gradients with plain loops.
#include "ops/prelu.h"

#include <cmath>

#include "fixture.h"

namespace dtrain {
using namespace test;

namespace {

/// Returns, for each element, the index of its slope, according to the definition of PreluSpec.
std::vector<size_t> slopes_of(const PreluSpec& spec) {
  std::vector<size_t> slopes;
  for (int64_t i = 0; i < spec.elements(); ++i) {
    int64_t slope = 0, rest = i;
    for (size_t axis = PreluSpec::kAxes; axis-- > 0; rest /= spec.extents[axis])
      slope += rest % spec.extents[axis] * spec.steps[axis];
    slopes.push_back(static_cast<size_t>(slope));
  }
  return slopes;
}

void check_prelu(const Device& device, const PreluSpec& spec) {
  CAPTURE(spec.elements());
  CAPTURE(spec.slopes());
  const std::vector<size_t> slope_numbers = slopes_of(spec);
  Floats src = device.random(spec.elements(), 1), diff = device.random(spec.elements(), 2);
  src[0] = 0;
  const Floats slopes = device.random(spec.slopes(), 3);
  Doubles dst, diff_src, diff_slopes(slopes.size());
  for (size_t i = 0; i < src.size(); ++i) {
    const double x = static_cast<double>(src[i]), dy = static_cast<double>(diff[i]),
                 slope = static_cast<double>(slopes[slope_numbers[i]]);
    dst.push_back(x < 0 ? slope * x : x);
    diff_src.push_back(x < 0 ? slope * dy : x > 0 ? dy : 0);
    diff_slopes[slope_numbers[i]] += x < 0 ? x * dy : 0;
  }
  const TypedArray own_src = device.typed(src), own_diff = device.typed(diff), out = device.typed(src.size());
  const Array<float> own_slopes = device.array(slopes), of_slopes = device.floats(slopes.size());
  device.ops().prelu_forward(spec, own_src.data(), own_slopes.data(), out.data());
  check_close(out.read(), dst, device.tolerance(1e-6));
  PreluBackwardArguments args{own_src.data(), own_slopes.data(), own_diff.data(), nullptr, of_slopes.data()};
  device.ops().prelu_backward(spec, args);
  check_close(of_slopes.read(), diff_slopes, device.tolerance(1e-5));
  args.diff_src = own_diff.data();  // runs the operation in place
  device.ops().prelu_backward(spec, args);
  check_close(own_diff.read(), diff_src, device.tolerance(1e-6));
  check_close(of_slopes.read(), diff_slopes, device.tolerance(1e-5));
}

}  // namespace

DEVICE_TEST_CASE("prelu and its gradients match the reference for every arrangement of slopes") {
  for (const PreluSpec& spec : std::vector<PreluSpec>{
           {.extents = {1, 1, 1, 1, 1, 37}, .steps = {0, 0, 0, 0, 0, 0}},      // one slope for all elements
           {.extents = {1, 1, 1, 1, 2001, 16}, .steps = {0, 0, 0, 0, 0, 1}},   // one slope for each channel
           {.extents = {1, 1, 1, 1, 1, 20'003}, .steps = {0, 0, 0, 0, 0, 0}},  // one slope for many elements
           {.extents = {1, 1, 1, 1, 3, 703}, .steps = {0, 0, 0, 0, 0, 1}},     // one slope for each element
           {.extents = {1, 1, 1, 3, 5, 77}, .steps = {0, 0, 0, 0, 1, 0}},      // channels first
           {.extents = {1, 1, 4, 3, 5, 8}, .steps = {0, 0, 0, 8, 0, 1}},       // channels in blocks
           {.extents = {1, 1, 3, 4, 5, 6}, .steps = {0, 0, 0, 6, 0, 1}},       // rows and channels
           // The axes of the slopes are in another order.
           {.extents = {2, 3, 4, 3, 2, 5}, .steps = {0, 15, 0, 1, 0, 3}}})
    check_prelu(device, spec);
}

}  // namespace dtrain
