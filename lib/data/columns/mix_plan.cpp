#include "data/columns/mix_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/augment/mixing.h"
#include "data/columns/column_transforms.h"

namespace dtrain {

namespace {

/// Checks the columns of a data set before an augmentation blends them.
class MixCheck {
 public:
  MixCheck(std::span<const ColumnPlan> plans, size_t inputs, const Configured<Augmentation>& augmentation)
      : plans_(plans), inputs_(inputs), augmentation_(augmentation) {}

  void check_types() const {
    for (size_t column = 0; column < plans_.size(); ++column)
      if (const TensorSpec& found = spec(column); found.dtype != DType::float32)
        fail(column < inputs_
                 ? fmt::format("only float32 inputs can be blended, but found {} for '{}'",
                               name_of(found.dtype), found.name)
                 : fmt::format("only float32 targets can be blended, but found {}; if the targets are "
                               "classes, use the transform one_hot and a loss of class probabilities",
                               name_of(found.dtype)));
  }

  /// Checks that all images have the same height and width. This is required because the same rectangle is
  /// replaced in all of them.
  void check_pictures(const std::map<size_t, size_t>& input_targets) const {
    const TensorSpec* first = nullptr;
    for (size_t column = 0; column < inputs_; ++column) {
      if (!is_picture(spec(column).shape)) continue;
      if (!first) first = &spec(column);
      if (!is_of_size(spec(column), *first))
        fail(
            fmt::format("all images must have the same height and width after the transforms, but found {} "
                        "for '{}' and {} for '{}'",
                        first->shape.str(), first->name, spec(column).shape.str(), spec(column).name));
    }
    if (!first)
      fail(
          fmt::format("the inputs must contain an image [height, width, channels] after the transforms, but "
                      "found {} for '{}'",
                      spec(0).shape.str(), spec(0).name));
    for (const auto& [target, input] : input_targets)
      if (is_picture(spec(input).shape) && !is_of_size(spec(target), *first))
        fail(
            fmt::format("the target that belongs to the input '{}' must be an image of the same height and "
                        "width as the input, but has the shape {} after the transforms",
                        spec(input).name, spec(target).shape.str()));
  }

 private:
  const TensorSpec& spec(size_t column) const { return plans_[column].spec(); }
  static bool is_of_size(const TensorSpec& one, const TensorSpec& other) {
    return is_picture(one.shape) && one.shape[0] == other.shape[0] && one.shape[1] == other.shape[1];
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(located(augmentation_.resolved.mark(), augmentation_.name + ": " + message));
  }

  std::span<const ColumnPlan> plans_;
  size_t inputs_;
  const Configured<Augmentation>& augmentation_;
};

}  // namespace

MixPlan plan_mixing(std::span<const ColumnPlan> plans, size_t inputs,
                    const std::map<size_t, size_t>& input_targets,
                    const std::vector<Configured<Augmentation>>& augment) {
  MixPlan mix;
  for (size_t i = 0; i < augment.size(); ++i) {
    const auto mixing = augment[i]->mixing();
    if (!mixing) continue;
    const MixCheck check(plans, inputs, augment[i]);
    check.check_types();
    if (augment[i]->needs_pictures()) check.check_pictures(input_targets);
    mix.mixings.emplace_back(mixing, augment_stream(i));
  }
  if (mix.mixings.empty()) return mix;
  for (size_t column = 0; column < plans.size(); ++column) {
    const auto same = input_targets.find(column);
    const bool is_input = column < inputs || same != input_targets.end();
    const Shape& shape = plans[column].spec().shape;
    mix.is_picture.push_back(is_input && is_picture(shape) &&
                             (column < inputs || mix.is_picture[same->second]));
  }
  for (size_t column = inputs; column-- > 0;)
    if (mix.is_picture[column]) mix.picture = plans[column].spec().shape;
  return mix;
}

}  // namespace dtrain
