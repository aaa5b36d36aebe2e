// Plans how columns are blended with those of other samples after the transforms.
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

/// Ways to blend samples, each with the random stream that it draws from.
struct MixPlan {
  std::vector<std::pair<std::shared_ptr<const Mixing>, uint32_t>> mixings;  // mixings in order
  /// Indexed by column. True for images: a rectangle is replaced if the mixing draws one. The elements of all
  /// other columns are blended with the ratio that the mixing draws.
  std::vector<bool> is_picture;
  Shape picture{1, 1};  // shape of the first image; mixings draw for its height and width
};

/// Plans the blending of columns with these plans; the first `inputs` of them are the model's inputs. If a
/// target is an input, or an image that belongs to an input, `input_targets` maps the target's column to the
/// input's column; both columns are blended alike. Throws UserError with the augmentation's location if a
/// column is not float32. Also throws if an augmentation needs images, and no input is an image after the
/// transforms or the images differ in size.
MixPlan plan_mixing(std::span<const ColumnPlan> plans, size_t inputs,
                    const std::map<size_t, size_t>& input_targets,
                    const std::vector<Configured<Augmentation>>& augment);

}  // namespace dtrain
