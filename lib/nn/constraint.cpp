#include "nn/constraint.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/axes.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

struct NormOptions {
  double min_value = 0, max_value = 1, rate = 1;
  Axes axis{{0}};
};

struct MaxNormOptions : NormOptions {
  MaxNormOptions() { max_value = 2; }
};

/// Returns a constraint that limits norms. The options come from the schema of one constraint, which sets
/// only some members of NormOptions.
std::shared_ptr<const Constraint> norms_of(const NormOptions& o) {
  return std::make_shared<const Constraint>(Constraint{{.min = static_cast<float>(o.min_value),
                                                        .max = static_cast<float>(o.max_value),
                                                        .rate = static_cast<float>(o.rate)},
                                                       o.axis.axes});
}

template <class Options>
Schema<Options>& with_axis(Schema<Options>& schema) {
  return schema.optional(
      "axis", static_cast<Axes Options::*>(&Options::axis),
      "Axis of the weight along which norms are computed, or a list of adjacent axes. To limit the norm of "
      "each unit or filter, use 0 for a dense kernel and [0, 1, 2] for a conv2d kernel.");
}

Schema<MaxNormOptions> max_norm_schema() {
  Schema<MaxNormOptions> schema("Scales weights down so that their norms are at most max_value.");
  schema.example("{max_value: 3}")
      .optional("max_value", static_cast<double MaxNormOptions::*>(&MaxNormOptions::max_value),
                "the largest norm", at_least(0.0));
  return with_axis(schema);
}

Schema<NormOptions> min_max_norm_schema() {
  using O = NormOptions;
  Schema<O> schema(
      "Scales weights so that their norms are between min_value and max_value. If rate is less than 1, each "
      "update moves the norms only part of the way to this range.");
  schema.example("{min_value: 0.5, max_value: 2}")
      .optional("min_value", &O::min_value, "the smallest norm", at_least(0.0))
      .optional("max_value", &O::max_value, "the largest norm", at_least(0.0))
      .optional("rate", &O::rate,
                "Fraction of the distance to the range by which each update moves a norm. With 1, all norms "
                "are in the range after each update.",
                between(0.0, 1.0))
      .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
        if (o.min_value > o.max_value)
          diagnostics.error(
              node, fmt::format(
                        "min_max_norm: min_value must be at most max_value, which is {}, but min_value is {}",
                        o.max_value, o.min_value));
      });
  return with_axis(schema);
}

/// Returns the axes in ascending order. Negative axes, which count from the last axis, are converted to
/// indices from 0.
std::vector<int64_t> sorted_axes(std::vector<int64_t> axes, const Shape& shape) {
  for (int64_t& axis : axes)
    if (axis < 0) axis += static_cast<int64_t>(shape.rank());
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace

std::string Constraint::mistake_for(const Shape& shape) const {
  if (is_elementwise()) return "";
  const std::vector<int64_t> sorted = sorted_axes(axes, shape);
  const auto rank = static_cast<int64_t>(shape.rank());
  if (sorted.empty()) return "expected at least one axis";
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] < 0 || sorted[i] >= rank)
      return fmt::format("expected axes from {} to {}, found [{}]", -rank, rank - 1, fmt::join(axes, ", "));
    if (i > 0 && sorted[i] != sorted[i - 1] + 1)
      return fmt::format("expected adjacent axes without repetition, but found [{}]", fmt::join(axes, ", "));
  }
  return "";
}

ConstraintSpec Constraint::spec_for(const Shape& shape) const {
  ConstraintSpec sized = spec;
  if (is_elementwise()) {
    sized.inner = shape.elements();
    return sized;
  }
  const std::vector<int64_t> sorted = sorted_axes(axes, shape);
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    const auto at = static_cast<int64_t>(axis);
    (at < sorted.front() ? sized.outer : at > sorted.back() ? sized.inner : sized.extent) *= shape[axis];
  }
  return sized;
}

template <>
const Registry<Constraint>& registry<Constraint>() {
  static const Registry<Constraint> table = [] {
    Registry<Constraint> t("constraint");
    t.add_with("max_norm", max_norm_schema(),
               [](const MaxNormOptions& o, const ConfigNode&) { return norms_of(o); });
    Schema<NormOptions> unit("Scales weights so that their norms are 1.");
    t.add_with("unit_norm", with_axis(unit.example("{axis: 0}")),
               [](const NormOptions& o, const ConfigNode&) {
                 return norms_of({.min_value = 1, .max_value = 1, .rate = 1, .axis = o.axis});
               });
    t.add_with("min_max_norm", min_max_norm_schema(),
               [](const NormOptions& o, const ConfigNode&) { return norms_of(o); });
    t.add_with("non_neg", Schema<NoOptions>("Sets negative elements to 0."),
               [](const NoOptions&, const ConfigNode&) {
                 return std::make_shared<const Constraint>(Constraint{{.non_negative = true}});
               });
    return t;
  }();
  return table;
}

}  // namespace dtrain
