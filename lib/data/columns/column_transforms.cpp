#include "data/columns/column_transforms.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "config/schema.h"
#include "config/schema_fields.h"

namespace dtrain {

namespace {

constexpr std::array<std::string_view, 1> kCommonKeys{"of"};

/// Adds the JSON schema of the option `of` to the schemas of a transform's options.
Json with_of(const Json& options) {
  Json of = json_type("array").set("items", json_type("string")).set("minItems", 1);
  return Json(options).set("of", of.set("description", "names of the inputs and targets to transform"));
}

/// Removes trailing extents of 1 because they do not change the elements of a row.
Shape without_ones_at_end(const Shape& shape) {
  std::vector<int64_t> extents = shape.extents();
  while (!extents.empty() && extents.back() == 1) extents.pop_back();
  return Shape(std::move(extents));
}

/// Calls `apply` and adds the location in the configuration to any UserError.
template <class Apply>
void at_mark(const Mark& mark, Apply apply) {
  try {
    apply();
  } catch (const UserError& error) {
    throw UserError(located(mark, error.what()));
  }
}

/// Moves the pixels of a target image in the same way as the pixels of its input. A mask of class numbers
/// keeps its type.
void augment_target(const AugmentPlan& augment, ColumnPlan& plan) {
  const DType stored = plan.spec().dtype;
  const AugmentedTarget target(augment.target->pixels, plan.spec().shape, augment.target->input,
                               augment.is_training);
  for (size_t i = 0; i < augment.augmentations.size(); ++i) {
    const Configured<Augmentation>& one = augment.augmentations[i];
    if (!one->moves_pixels()) continue;
    at_mark(one.resolved.mark(), [&] {
      if (!target.has_same_aspect)
        throw UserError(
            fmt::format("{}: target images must have the same aspect ratio (height to width) as the inputs, "
                        "but found targets of {} and inputs of {}",
                        one.name, plan.stored().shape.str(), augment.target->input.str()));
      one->apply_to_target(plan, augment_stream(i), target);
    });
    if (target.pixels == TargetPicture::classes) plan.cast(stored);
  }
}

/// Adds the augmentations to the plan. Returns false and leaves the plan unchanged if the column does not
/// have the shape of an image at this point of the plan.
bool apply_augment(const AugmentPlan& augment, ColumnPlan& plan) {
  if (!is_picture(plan.spec().shape)) return false;
  if (augment.target) {
    augment_target(augment, plan);
    return true;
  }
  if (plan.spec().dtype == DType::float64) plan.cast(DType::float32);
  for (size_t i = 0; i < augment.augmentations.size(); ++i) {
    const Configured<Augmentation>& one = augment.augmentations[i];
    at_mark(one.resolved.mark(), [&] {
      if (augment.is_training)
        one->apply(plan, augment_stream(i));
      else
        one->apply_in_evaluation(plan);
    });
  }
  return true;
}

bool converts_losslessly(DType from, DType to) {
  return from == to || from == DType::uint8 ||
         ((from == DType::int32 || from == DType::float64) && to == DType::float32);
}

/// Returns a hint for messages if the target has one class index per sample but the model's output needs a
/// target of a different shape or type. Returns "" if there is no hint.
std::string advice_for_target(const TensorSpec& wanted, const TensorSpec& found) {
  if (found.shape.elements() != 1) return "";
  if (wanted.dtype == DType::int32 && wanted.shape.elements() > 1)
    return "; the model predicts one class per position of a sample, but the target has one class per "
           "sample: is a flatten or a global pooling layer missing before the output?";
  if (wanted.dtype == DType::float32 && wanted.shape.elements() > 1)
    return "; use the loss sparse_categorical_crossentropy for class indices, or the transform one_hot to "
           "convert them to vectors";
  return "";
}

}  // namespace

bool Codec<TransformSpec>::parse(const ConfigNode& node, const std::string&, TransformSpec& out,
                                 Diagnostics& diagnostics) {
  const size_t before = diagnostics.count();
  const Registry<Transform>& kinds = registry<Transform>();
  const auto written = take_apart(node, kinds.noun(), "", "", diagnostics);
  if (!written) return false;
  if (const ConfigNode* of = written->options.find("of")) {
    out.written_of = *of;
    if (of->is_sequence() && of->items().empty())
      report_unexpected(*of, written->name.text() + ": of", "the name of an input or a target", diagnostics);
    else
      Codec<std::vector<std::string>>::parse(*of, written->name.text() + ": of", out.of, diagnostics);
  }
  out.transform = kinds.parse(written->name, written->options.without(kCommonKeys), diagnostics);
  return diagnostics.count() == before;
}

ConfigNode Codec<TransformSpec>::write(const TransformSpec& spec) {
  const ConfigNode& resolved = spec.transform.resolved;
  if (spec.of.empty()) return resolved;
  const ConfigNode* options = resolved.find(spec.transform.name);
  return ConfigNode::mapping({ConfigNode::entry(
      spec.transform.name, (options ? *options : ConfigNode::mapping({}))
                               .with("of", Codec<std::vector<std::string>>::write(spec.of)))});
}

Json Codec<TransformSpec>::schema() {
  const Registry<Transform>& kinds = registry<Transform>();
  return SchemaDefinitions::define(kinds.noun(),
                                   [&] { return with_option_fields(kinds.choices_schema(), with_of); });
}

ColumnTransforms transforms_of(const TensorSpec& wanted, bool target,
                               const std::vector<TransformSpec>& transforms) {
  ColumnTransforms all{{}, wanted};
  const std::string name = name_for_of(wanted);
  for (auto spec = transforms.rbegin(); spec != transforms.rend(); ++spec) {
    const bool is_for = spec->of.empty()
                            ? spec->transform->is_for(all.stored, target)
                            : std::find(spec->of.begin(), spec->of.end(), name) != spec->of.end();
    if (!is_for) continue;
    all.chosen.insert(all.chosen.begin(), &*spec);
    all.stored = spec->transform->before(all.stored);
  }
  return all;
}

void check_transforms(const std::vector<TransformSpec>& transforms, const std::vector<TensorSpec>& inputs,
                      const std::vector<TensorSpec>& targets, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  std::set<const TransformSpec*> used;
  for (const auto* columns : {&inputs, &targets})
    for (const TensorSpec& column : *columns) {
      names.push_back(name_for_of(column));
      for (const TransformSpec* spec : transforms_of(column, columns == &targets, transforms).chosen)
        used.insert(spec);
    }
  for (const TransformSpec& spec : transforms) {
    for (size_t i = 0; i < spec.of.size(); ++i)
      if (std::count(names.begin(), names.end(), spec.of[i]) > 1)
        diagnostics.error(spec.written_of.items()[i],
                          fmt::format("{}: `of` is ambiguous because both an input and the model's only "
                                      "target are called '{}'; give the input another name",
                                      spec.transform.name, spec.of[i]));
      else if (std::find(names.begin(), names.end(), spec.of[i]) == names.end())
        diagnostics.error(
            spec.written_of.items()[i],
            fmt::format("{}: `of` contains '{}', but the model has no input or target with this name{}",
                        spec.transform.name, spec.of[i], suggestion_or_list(spec.of[i], names)));
    if (spec.of.empty() && !used.contains(&spec))
      diagnostics.error(spec.transform.resolved.mark(),
                        fmt::format("{}: by default, this transform applies to none of the model's inputs "
                                    "and targets; name the columns to transform, for example `of: [{}]`",
                                    spec.transform.name, names.front()));
  }
}

std::string name_for_of(const TensorSpec& column) {
  return column.name.empty() ? "target" : column.name;
}

TensorSpec transformed(const TensorSpec& stored, const TensorSpec& wanted, bool target,
                       const std::vector<TransformSpec>& transforms, const AugmentPlan& augment) {
  ColumnPlan plan(stored);
  bool is_augmented = target && !augment.target;
  const auto augment_pictures = [&] { is_augmented = is_augmented || apply_augment(augment, plan); };
  for (const TransformSpec* spec : transforms_of(wanted, target, transforms).chosen) {
    augment_pictures();
    // Fitted transforms are skipped because they do not change the shape.
    if (!spec->transform->is_fitted())
      at_mark(spec->transform.resolved.mark(), [&] { spec->transform->apply(plan); });
  }
  augment_pictures();
  return plan.spec();
}

PlannedColumn plan_column(PlannedColumn begun, const TensorSpec& wanted, bool target,
                          const std::vector<const TransformSpec*>& chosen, const AugmentPlan& augment,
                          Fitter& fitter, const Mark& place) {
  // Transforms are fitted with the evaluation plan because it contains no random augmentation.
  ColumnPlan &plan = begun.plan, &evaluation = begun.evaluation;
  const TensorSpec stored = plan.stored();
  const AugmentPlan evaluation_augment{augment.augmentations, false, augment.target};
  std::string options;  // options of the transforms since the last fitted transform
  const auto augment_pictures = [&] {
    if ((target && !augment.target) || begun.is_augmented) return;
    begun.is_augmented = apply_augment(evaluation_augment, evaluation) && apply_augment(augment, plan);
  };
  for (const TransformSpec* spec : chosen) {
    augment_pictures();
    const Transform& transform = *spec->transform;
    options += spec->transform.resolved.to_yaml() + "\n";
    at_mark(spec->transform.resolved.mark(), [&] {
      if (!transform.is_fitted()) {
        transform.apply(evaluation);
        return transform.apply(plan);
      }
      const FittedStep step = fitter.next(evaluation, spec->transform.name, std::exchange(options, ""),
                                          [&](const FitSamples& samples) { return transform.fit(samples); });
      transform.apply_fitted(evaluation, step);
      transform.apply_fitted(plan, step);
    });
  }
  augment_pictures();
  const TensorSpec found = plan.spec();
  const auto describe = [](const TensorSpec& spec) {
    return fmt::format("{} {}", spec.shape.str(), name_of(spec.dtype));
  };
  if (without_ones_at_end(found.shape) != without_ones_at_end(wanted.shape) ||
      !converts_losslessly(found.dtype, wanted.dtype))
    throw UserError(
        located(place, fmt::format("the {}{} needs {} per sample, but the data have {} after the transforms "
                                   "('{}' is stored as {}){}",
                                   target ? "target" : "model's input",
                                   wanted.name.empty() ? "" : fmt::format(" '{}'", wanted.name),
                                   describe(wanted), describe(found), stored.name, describe(stored),
                                   target ? advice_for_target(wanted, found) : "")));
  for (ColumnPlan* one : {&plan, &evaluation}) {
    one->cast(wanted.dtype);
    one->reshape(wanted.shape);
    one->rename(wanted.name);
  }
  return begun;
}

}  // namespace dtrain
