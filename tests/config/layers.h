// A small registry for the tests of schemas. It has layers with an option that is a registered type, too: the
// activation.
#pragma once

#include <optional>
#include <string>

#include "config/registry.h"

namespace dtrain {

struct TestActivation {
  virtual ~TestActivation() = default;
  virtual double apply(double x) const = 0;
};

struct TestLinear final : TestActivation {
  struct Options {};
  explicit TestLinear(const Options&) {}
  double apply(double x) const override { return x; }
};

struct TestLeaky final : TestActivation {
  struct Options {
    double negative_slope = 0.25;
  };
  explicit TestLeaky(const Options& options) : options_(options) {}
  double apply(double x) const override { return x > 0 ? x : options_.negative_slope * x; }

 private:
  Options options_;
};

enum class TestPadding { valid, same };
template <>
inline const EnumNames<TestPadding> names_of<TestPadding> = {{TestPadding::valid, "valid"},
                                                             {TestPadding::same, "same"}};

template <>
inline const Registry<TestActivation>& registry<TestActivation>() {
  static const auto kTable =
      Registry<TestActivation>("activation")
          .add<TestLinear>("linear", Schema<TestLinear::Options>("x"))
          .add<TestLeaky>("leaky_relu", Schema<TestLeaky::Options>("x, or a part of it below 0")
                                            .optional("negative_slope", &TestLeaky::Options::negative_slope,
                                                      "factor below 0", at_least(0.0)))
          .number_as("leaky_relu", "negative_slope");
  return kTable;
}

struct TestConv {
  int64_t filters = 0;
  Size2 kernel_size;
  Size2 strides;
  TestPadding padding = TestPadding::valid;
  Configured<TestActivation> activation = registry<TestActivation>().make("linear");
  double rate = 0;
  std::optional<double> clip;

  static const Schema<TestConv>& schema() {
    static const auto kSchema =
        Schema<TestConv>("A convolution.")
            .required("filters", &TestConv::filters, "number of output channels", at_least<int64_t>(1))
            .required("kernel_size", &TestConv::kernel_size, "height and width of the window")
            .optional("strides", &TestConv::strides, "steps of the window")
            .optional("padding", &TestConv::padding, "what lies outside")
            .optional("activation", &TestConv::activation, "applied to the sum")
            .optional("rate", &TestConv::rate, "dropout", between_excluding_high(0.0, 1.0))
            .optional("clip", &TestConv::clip, "largest output", greater_than<std::optional<double>>(0.0))
            .rule([](const TestConv& conv, const ConfigNode& node, Diagnostics& diagnostics) {
              if (conv.strides.height > conv.kernel_size.height)
                diagnostics.error(node, "conv2d: strides are larger than kernel_size");
            });
    return kSchema;
  }
};

struct TestReshape {
  Shape target_shape;

  static const Schema<TestReshape>& schema() {
    static const auto kSchema = Schema<TestReshape>("Another shape.")
                                    .required("target_shape", &TestReshape::target_shape, "the new extents");
    return kSchema;
  }
};

struct TestActivate {
  Configured<TestActivation> function;

  static const Schema<TestActivate>& schema() {
    static const auto kSchema = Schema<TestActivate>("An activation as a layer.")
                                    .required("function", &TestActivate::function, "which")
                                    .positional("function");
    return kSchema;
  }
};

}  // namespace dtrain
