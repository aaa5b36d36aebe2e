// Error messages for the options of weights: regularizers and constraints.
#include <doctest/doctest.h>

#include "model_errors.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("invalid regularizers and constraints are errors") {
  const auto check_error = [](const std::string& option, const std::string& expected) {
    const std::string errors = model_errors(with_layers("  - dense: {units: 1, " + option + "}\n"));
    INFO(errors);
    CHECK(errors.find(expected) != std::string::npos);
  };
  check_error("kernel_regularizer: {l3: 1}", "unknown regularizer 'l3'");
  check_error("kernel_regularizer: {l2: -1}", "l2's l2: expected a number of at least 0, found '-1'");
  check_error("kernel_regularizer: {orthogonal_regularizer: {mode: all}}", "mode: unknown value 'all'");
  check_error("bias_regularizer: orthogonal_regularizer",
              "dense 'dense': orthogonal_regularizer cannot be applied to the bias of shape 1: expected a "
              "weight with two axes");
  check_error("kernel_regularizer: {orthogonal_regularizer: {mode: columns}}",
              "expected at least two columns");
  check_error("activity_regularizer: {l3: 1}", "unknown regularizer 'l3'");
  check_error("activity_regularizer: orthogonal_regularizer",
              "activity_regularizer: expected l1, l2 or l1_l2, but found orthogonal_regularizer, which is "
              "only for weights");
  check_error("bias_constraint: max_nrom", "did you mean 'max_norm'?");
  check_error("bias_constraint: {min_max_norm: {min_value: 2}}",
              "min_value must be at most max_value, which is 1, but min_value is 2");
}

TEST_CASE("attention and spatial dropout have no penalty on their output") {
  const std::string errors = model_errors(
      "inputs: {x: [3, 4]}\nlayers:\n  - multi_head_attention: {num_heads: 2, activity_regularizer: l2}\n");
  INFO(errors);
  CHECK(errors.find("give the regularizer to that layer") != std::string::npos);
  CHECK(model_errors(with_layers("  - spatial_dropout2d: {rate: 0.5, activity_regularizer: l2}\n"))
            .find("spatial_dropout2d 'spatial_dropout2d': activity_regularizer: this layer does not support "
                  "the option") != std::string::npos);
}

TEST_CASE("the axes of a constraint must suit the weight") {
  const auto error = [](const std::string& axis) {
    return model_errors(
        with_layers("  - conv2d: {filters: 1, kernel_size: 3, kernel_constraint: {max_norm: {axis: " + axis +
                    "}}}\n  - flatten\n"));
  };
  CHECK(error("[0, 1, 2]") == "");
  CHECK(error("[-2, 1]") == "");
  CHECK(error("4") ==
        "m.yaml:3:5: error: conv2d 'conv2d': the constraint on the kernel of shape 3x3x1x1 has an invalid "
        "axis: expected axes from -4 to 3, found [4]");
  CHECK(error("[0, 2]").ends_with("expected adjacent axes without repetition, but found [0, 2]"));
  CHECK(error("[]").ends_with("expected at least one axis"));
}
