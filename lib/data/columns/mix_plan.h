// Which columns are blended with those of other samples, after the transforms, and how.
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

/// Ways to blend samples, each with the stream of its draws.
struct MixPlan {
  std::vector<std::pair<std::shared_ptr<const Mixing>, uint32_t>> mixings;  // in order
  /// By column: a rectangle of a picture is replaced where the mixing says so; the elements of other columns
  /// are blended by the share that the mixing draws.
  std::vector<bool> is_picture;
  Shape picture{1, 1};  // of the first picture: what is drawn depends on its height and width
};

/// The way to blend columns of these plans, of which the first `inputs` are the model's inputs.
/// `input_targets` has the columns of targets that are inputs, and the column of the input of each: they are
/// blended as that is. Throws UserError with the augmentation's place where columns are not of float32, and
/// where an augmentation needs pictures and the inputs are none after the transforms, or of several sizes.
MixPlan plan_mixing(std::span<const ColumnPlan> plans, size_t inputs,
                    const std::map<size_t, size_t>& input_targets,
                    const std::vector<Configured<Augmentation>>& augment);

}  // namespace dtrain
