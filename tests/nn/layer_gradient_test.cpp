// Checks every layer's gradients against finite differences of its outputs.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "layer_cases.h"

namespace dtrain::test {
namespace {

double projection(const Values& output, const Values& weights) {
  return std::inner_product(output.begin(), output.end(), weights.begin(), 0.0, std::plus<>(),
                            [](float a, float b) { return static_cast<double>(a) * b; });
}

/// Compares `gradient` with finite differences: returns true if it is the derivative of the projection with
/// respect to `value`. The finite differences change `value` by `step`. If the function has a kink at this
/// value, `gradient` may be the slope on either side.
bool agrees(LayerRun& run, float& value, float gradient, const Values& weights, float step) {
  const float x = value;
  const double here = projection(run.forward(), weights);
  value = x + step;
  const double above = (projection(run.forward(), weights) - here) / (static_cast<double>(value) - x);
  value = x - step;
  const double below = (here - projection(run.forward(), weights)) / (static_cast<double>(x) - value);
  value = x;
  const auto near = [&](double slope) { return std::abs(gradient - slope) <= 4e-3 * (1 + std::abs(slope)); };
  const double both = (above + below) / 2;
  return near(both) || near(above) || near(below);
}

/// Checks the gradients of at most `most` elements of an array.
void check_array(LayerRun& run, Values& values, const Values& gradient, const Values& weights, size_t most,
                 const std::string& what) {
  REQUIRE(gradient.size() == values.size());
  const size_t stride = values.size() / most + 1;
  for (size_t i = 0; i < values.size(); i += stride) {
    INFO(what << "[" << i << "] has gradient " << gradient[i]);
    // A gradient is correct if it agrees for one of two steps. The large step has the smaller rounding error,
    // but the small step crosses fewer kinks.
    CHECK((agrees(run, values[i], gradient[i], weights, 1e-2f) ||
           agrees(run, values[i], gradient[i], weights, 1e-3f)));
  }
}

void check_gradients(const LayerCase& c, Device* device = nullptr) {
  INFO(c.yaml << ", activation " << static_cast<int>(c.fused.kind) << ", layout "
              << static_cast<int>(c.layout));
  LayerRun run(c, device);
  const Values weights = spread_values(run.output_elements(), -1, 1, 99);
  const Values output = run.forward();
  const LayerRun::Gradients gradients = run.backward(weights);

  if (run.requirements().forward_in_place && !run.requirements().is_view) CHECK(run.forward(true) == output);
  if (run.requirements().backward_in_place && c.inputs_need_gradient) {
    run.forward();
    CHECK(run.backward(weights, true).inputs == gradients.inputs);
  }
  const size_t most = device ? 8 : 40;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (c.inputs_need_gradient && c.inputs[i].dtype == DType::float32)
      check_array(run, run.inputs[i], gradients.inputs[i], weights, most, "input " + std::to_string(i));
  for (size_t i = 0; i < run.parameters.size(); ++i)
    if (c.trainable && !run.parameter_specs[i].moving_average)
      check_array(run, run.parameters[i], gradients.parameters[i], weights, most,
                  run.parameter_specs[i].name);
}

/// Layers whose inputs have no gradient, with the reason. The test cases of these layers check only the
/// gradients of parameters.
const std::map<std::string, std::string> kWithoutInputGradients = {
    {"embedding", "its inputs are indices"},
};

bool is_of_kind(const LayerCase& c, const std::string& kind) {
  return c.yaml == kind || c.yaml.starts_with(kind + ":");
}

bool checks_input_gradients(const LayerCase& c) {
  return c.inputs_need_gradient && std::all_of(c.inputs.begin(), c.inputs.end(), [](const TensorSpec& input) {
           return input.dtype == DType::float32;
         });
}

std::string name_of(const LayerCase& c) {
  std::string name = c.yaml + " of";
  for (const TensorSpec& input : c.inputs) name += " " + input.shape.str();
  if (c.fused.kind != Activation::linear) name += ", with an activation";
  if (!c.mask.empty()) name += ", masked";
  return c.trainable ? name : name + ", frozen";
}

struct NamedCase {
  std::string name;
  LayerCase row;
};
const std::vector<NamedCase>& named_cases() {
  static const std::vector<NamedCase> all = [] {
    std::vector<NamedCase> named;
    for (const LayerCase& c : layer_cases()) named.push_back({name_of(c), c});
    return named;
  }();
  return all;
}

/// Returns a test case for every combination of a layer and an activation that the layer fuses.
const std::vector<NamedCase>& fused_cases() {
  using A = Activation;
  static const std::vector<std::pair<std::string, ActivationSpec>> activations = {
      {"relu", {A::relu}},
      {"leaky_relu", {A::leaky_relu, 0.2f}},
      {"gelu", {A::gelu}},
      {"silu", {A::silu}},
      {"tanh", {A::tanh}},
      {"sigmoid", {A::sigmoid}},
      {"elu", {A::elu, 1.0f}},
      {"clipped_relu", {.kind = A::clipped_relu, .maximum = 0.5f}},
      {"softplus", {A::softplus}},
      {"softsign", {A::softsign}},
      {"hard_sigmoid", {A::hard_sigmoid, 0.2f}},
      {"hard_silu", {A::hard_silu}},
      {"selu", {A::selu}},
      {"exponential", {A::exponential}},
      {"mish", {A::mish}},
  };
  static const std::vector<NamedCase> all = [] {
    std::vector<NamedCase> named;
    for (LayerCase c : layer_cases()) {
      const std::string name = name_of(c);
      for (const auto& [activation, spec] : activations) {
        if (!layer_of(c.yaml)->can_fuse(spec)) continue;
        c.fused = spec;
        named.push_back({name + ", " + activation, c});
      }
    }
    return named;
  }();
  return all;
}

/// Calls use(row) for each test case, in a doctest subcase with the name of the test case.
template <class Use>
void each_in_subcase(const std::vector<NamedCase>& rows, Use&& use) {
  for (const NamedCase& c : rows) SUBCASE(c.name.c_str()) use(c.row);
}

/// Checks that the elements differ by at most `tolerance`. The tolerance is relative to the largest expected
/// magnitude, or to 1 if that is larger.
void check_near(const Values& found, const Values& expected, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(found.size() == expected.size());
  double greatest = 1, worst = 0;
  for (const float value : expected) greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  bool numbers = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const double apart = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    numbers = numbers && !std::isnan(apart);
    worst = std::max(worst, apart);
  }
  CHECK(numbers);
  CHECK(worst <= tolerance * greatest);
}

/// Checks that a GPU computes the same values and gradients as the CPU.
void check_as_on_cpu(const LayerCase& c, Device& device) {
  INFO(c.yaml << ", activation " << static_cast<int>(c.fused.kind));
  LayerRun there(c, &device), here(c);
  here.inputs = there.inputs;
  here.parameters = there.parameters;
  // The tolerance allows for intermediate values that are rounded to the compute type, and for inputs of
  // matrix products that are rounded to TF32.
  const double tolerance = device.math.tf32 ? 4e-3 : device.tolerance(1e-4, 8);
  check_near(there.forward(), here.forward(), tolerance, "output");
  const Values weights = device.exact(spread_values(there.output_elements(), -1, 1, 99));
  const auto found = there.backward(weights), expected = here.backward(weights);
  REQUIRE(found.inputs.size() == expected.inputs.size());
  REQUIRE(found.parameters.size() == expected.parameters.size());
  for (size_t i = 0; i < found.inputs.size(); ++i)
    check_near(found.inputs[i], expected.inputs[i], tolerance, "input " + std::to_string(i));
  for (size_t i = 0; i < found.parameters.size(); ++i)
    check_near(found.parameters[i], expected.parameters[i], tolerance, there.parameter_specs[i].name);
}

}  // namespace

TEST_CASE("on a GPU: values and gradients of every layer equal the CPU's in every type" *
          doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    for (LayerCase c : layer_cases()) {
      check_as_on_cpu(c, device);
      // The test uses smooth activations, because at a kink slightly different numbers may have different
      // gradients.
      for (const Activation kind : {Activation::tanh, Activation::sigmoid}) {
        c.fused = {kind};
        if (layer_of(c.yaml)->can_fuse(c.fused)) check_as_on_cpu(c, device);
      }
      c.fused = {};
      c.inputs_need_gradient = false;
      if (!layer_of(c.yaml)->parameters(c.inputs).empty() && c.trainable) check_as_on_cpu(c, device);
      c.inputs_need_gradient = true;
      c.trainable = false;
      check_as_on_cpu(c, device);
    }
    check_as_on_cpu({"batch_normalization", {kDeepImage}, {Activation::relu}}, device);
    check_as_on_cpu({"batch_normalization: {synchronized: true}", {kDeepImage}, {Activation::relu}}, device);
  });
}

TEST_CASE("gradients of every layer match finite differences") {
  each_in_subcase(named_cases(), [](const LayerCase& c) { check_gradients(c); });
}

TEST_CASE("on a GPU: gradients of every layer match finite differences" * doctest::test_suite("gpu")) {
  const auto device = gpu_device({});
  for (const LayerCase& c : layer_cases()) check_gradients(c, device.get());
}

TEST_CASE("every kind of layer has its gradients checked") {
  const std::vector<std::string> kinds = registry<Layer>().names();
  for (const std::string& kind : kinds) {
    const bool without_input_gradients = kWithoutInputGradients.contains(kind);
    const bool checked = std::any_of(layer_cases().begin(), layer_cases().end(), [&](const LayerCase& c) {
      return is_of_kind(c, kind) && (without_input_gradients ? c.trainable : checks_input_gradients(c));
    });
    CHECK_MESSAGE(checked, "layer_cases() has no row that checks the gradients of the layer ", kind);
  }
  for (const auto& [kind, reason] : kWithoutInputGradients) {
    CHECK_MESSAGE(std::count(kinds.begin(), kinds.end(), kind) == 1, "kWithoutInputGradients names ", kind,
                  ", which is no layer");
    for (const LayerCase& c : layer_cases()) {
      if (!is_of_kind(c, kind)) continue;
      INFO(c.yaml, " is a row of a layer without input gradients: ", reason);
      CHECK(!checks_input_gradients(c));
      CHECK(!layer_of(c.yaml)->parameters(c.inputs).empty());
    }
  }
}

// If two subcases have the same name, doctest runs them as one, or skips the second.
TEST_CASE("rows have distinct names") {
  std::set<std::string> names;
  for (const std::vector<NamedCase>* rows : {&named_cases(), &fused_cases()})
    for (const NamedCase& c : *rows) CHECK_MESSAGE(names.insert(c.name).second, "two rows are ", c.name);
}

TEST_CASE("gradients through every fused activation match finite differences") {
  CHECK(fused_cases().size() >= 8 * 9 + 5);
  each_in_subcase(fused_cases(), [](const LayerCase& c) { check_gradients(c); });
}

TEST_CASE("values and gradients are the same in other layouts") {
  const auto check = [](LayerCase c) {
    const Values plain = LayerRun(c).forward();
    for (const Layout layout : {Layout::planar, Layout::blocked8, Layout::blocked16}) {
      c.layout = layout;
      check_gradients(c);
      const Values values = LayerRun(c).forward();
      REQUIRE(values.size() == plain.size());
      for (size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - plain[i]) <= 1e-5);
    }
  };
  for (const char* yaml :
       {"max_pooling2d", "average_pooling2d: {pool_size: 3, padding: same}", "global_max_pooling2d",
        "global_average_pooling2d", "batch_normalization", "activation: tanh", "flatten",
        "conv2d: {filters: 16, kernel_size: 3}", "layer_normalization", "group_normalization: {groups: 4}",
        "rms_normalization", "rescaling: 2", "spatial_dropout2d: 0.4", "gaussian_noise: 0.4"})
    check({yaml, {kDeepImage}});
  for (const char* yaml : {"prelu", "prelu: {shared_axes: [1, 2]}", "prelu: {shared_axes: [1, 3]}",
                           "prelu: {shared_axes: [2, 3]}", "prelu: {shared_axes: [1, 2, 3]}"})
    check({yaml, {kDeepImage}});
  check({"prelu: {shared_axes: 1}", {{"x", {6, 16}}}});
  check({"batch_normalization", {kDeepImage}, {Activation::relu}});
  check({"batch_normalization: {synchronized: true}", {kDeepImage}});
  check({"batch_normalization: {synchronized: true}", {kDeepImage}, {Activation::relu}});
  check({.yaml = "batch_normalization", .inputs = {kDeepImage}, .trainable = false});
  for (const char* yaml : {"add", "multiply", "concatenate"})
    check({yaml, {kDeepImage, kDeepImage, kDeepImage}});
  for (const char* yaml :
       {"max_pooling3d", "average_pooling3d: {pool_size: 3, padding: same}", "global_max_pooling3d",
        "global_average_pooling3d", "batch_normalization", "activation: tanh", "flatten",
        "conv3d: {filters: 16, kernel_size: 3}", "zero_padding3d", "upsampling3d"})
    check({yaml, {kDeepVolume}});
}

TEST_CASE("gradients are right without input gradients and for frozen layers") {
  each_in_subcase(named_cases(), [](LayerCase c) {
    c.inputs_need_gradient = false;
    if (!layer_of(c.yaml)->parameters(c.inputs).empty() && c.trainable) check_gradients(c);
    c.inputs_need_gradient = true;
    c.trainable = false;
    check_gradients(c);
  });
}

TEST_CASE("batch normalization scales its statistics by the replica's share") {
  LayerRun run({"batch_normalization", {{"x", {2, 2, 1}}}});
  run.share = 0.25f;
  run.inputs[0] = {1, 2, 3, 4, 5, 6, 7, 12};
  run.forward();
  const auto gradients = run.backward(Values(8, 0.0f)).parameters;
  CHECK(run.parameter_specs[2].name == "moving_mean");
  CHECK(gradients[2][0] == doctest::Approx(0.25 * 5));
  // The variance is biased: the sum of the squares of -4 -3 -2 -1 0 1 2 7, divided by 8.
  CHECK(gradients[3][0] == doctest::Approx(0.25 * 84 / 8));
  CHECK(*run.parameter_specs[2].moving_average == 0.99f);
  CHECK(*run.parameter_specs[3].moving_average == 0.99f);
  CHECK(!run.parameter_specs[0].moving_average);
}

}  // namespace dtrain::test
