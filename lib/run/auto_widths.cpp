#include "run/auto_widths.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "data/columns/sample_forms.h"

namespace dtrain {

namespace {

/// An `auto` node and the value that replaces it.
struct Settled {
  ConfigNode open, value;
};

ConfigNode number_at(int64_t number, const Mark& mark) {
  return ConfigNode::scalar(std::to_string(number), false, mark);
}

/// Returns the shape as a configuration node; scalars become [1], because a column of scalars feeds an input
/// of one element.
ConfigNode shape_at(const Shape& shape, const Mark& mark) {
  if (shape.rank() == 0) return ConfigNode::sequence({number_at(1, mark)}, mark);
  std::vector<ConfigNode> extents;
  for (const int64_t extent : shape) extents.push_back(number_at(extent, mark));
  return ConfigNode::sequence(std::move(extents), mark);
}

/// Returns the location of the first `auto`. Errors about values that the data cannot determine are reported
/// at this location.
Mark first_open(const ModelEnds& ends) {
  for (const ModelInput& input : ends.inputs)
    if (!input.open_shape.is_null()) return input.open_shape.mark();
  for (const ModelOutput& output : ends.outputs)
    if (!output.open_units.is_null()) return output.open_units.mark();
  return {};
}

/// Returns the target of each output, with the type that the loss of the output takes. Returns an empty list
/// if no output has `units: auto`.
std::vector<WantedColumn> wanted_targets(const RunConfig& draft, const ModelEnds& ends) {
  const auto is_open = [](const ModelOutput& output) { return !output.open_units.is_null(); };
  if (std::none_of(ends.outputs.begin(), ends.outputs.end(), is_open)) return {};
  std::vector<WantedColumn> targets;
  for (const Head& head : draft.heads) {
    // The width of the output is not known yet, so target() is called for an output with a width of 1. The
    // type of the target (class indices or floats) does not depend on the width.
    const auto target = head.loss
                            ? head.loss->target({"", Shape{1}, DType::float32}, [](const std::string&) {})
                            : std::nullopt;
    targets.push_back({head.target.name, std::nullopt, target ? target->dtype : DType::float32});
  }
  return targets;
}

/// Returns the number of units that the output of this head needs. Reports an error if the target has too few
/// classes for the loss.
ConfigNode units_of(const Head& head, const ConfigNode& open, const Shape& target, int64_t classes,
                    Diagnostics& diagnostics) {
  const int64_t units = classes > 0 ? classes : target.columns();
  if (units < 2 && head.loss && head.loss->tells_classes() && !head.loss->is_of_columns())
    diagnostics.error(
        open, classes > 0
                  ? "auto: the target must have at least two classes, but the training split has only one"
                  : "auto: this loss takes a target with one number per class, but the target is a single "
                    "number; if the target is a class index, use sparse_categorical_crossentropy, or the "
                    "transform one_hot");
  return number_at(units, open.mark());
}

}  // namespace

ConfigNode with_widths(const ConfigNode& config, const RunConfig& draft, const ModelEnds& ends,
                       Diagnostics& diagnostics) {
  const Mark place = first_open(ends);
  if (!draft.dataset.train) {
    diagnostics.error(
        place,
        "auto: this value is determined from the training split, but the data set has no 'train' split");
    return config;
  }
  std::vector<WantedColumn> inputs;
  for (const ModelInput& input : ends.inputs) inputs.push_back({input.name, input.shape, input.dtype});
  const SampleForms forms = training_forms(draft.dataset, inputs, wanted_targets(draft, ends), place);
  std::vector<Settled> settled;
  for (size_t i = 0; i < ends.inputs.size(); ++i)
    if (const ConfigNode& open = ends.inputs[i].open_shape; !open.is_null())
      settled.push_back({open, shape_at(forms.inputs[i], open.mark())});
  for (size_t i = 0; i < ends.outputs.size(); ++i)
    if (const ConfigNode& open = ends.outputs[i].open_units; !open.is_null())
      settled.push_back(
          {open, units_of(draft.heads[i], open, forms.targets[i], forms.classes[i], diagnostics)});
  return config.with_scalars([&](const ConfigNode& scalar) {
    const auto found = std::find_if(settled.begin(), settled.end(),
                                    [&](const Settled& one) { return one.open.same_as(scalar); });
    return found == settled.end() ? scalar : found->value;
  });
}

}  // namespace dtrain
