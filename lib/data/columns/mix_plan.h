// Plans how samples are blended with other samples after the transforms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "config/registry.h"
#include "data/augment/augmentation.h"
#include "data/columns/column_plan.h"

namespace dtrain {

/// The augmentations that blend samples, each with its stream of random numbers.
struct MixPlan {
  std::vector<std::pair<std::shared_ptr<const Mixing>, uint32_t>> mixings;  // mixings in order
  /// For each column, whether it contains images. If a mixing draws a rectangle, the rectangle is replaced in
  /// these columns. All elements of the other columns are blended with the weight that the mixing draws.
  std::vector<bool> is_picture;
  Shape picture{1, 1};  // shape of the first image column; rectangles are drawn for its height and width
};

/// Plans the blending of the columns with the given plans. The first `inputs` columns are the model's inputs.
/// If a target is also an input, or is an image that belongs to an input, `input_targets` maps the target's
/// column to the input's column. Both columns are blended in the same way.
/// Throws UserError with the augmentation's location if a column is not float32. If an augmentation needs
/// images, also throws UserError if no input is an image after the transforms, or if the images differ in
/// height or width.
MixPlan plan_mixing(std::span<const ColumnPlan> plans, size_t inputs,
                    const std::map<size_t, size_t>& input_targets,
                    const std::vector<Configured<Augmentation>>& augment);

}  // namespace dtrain
