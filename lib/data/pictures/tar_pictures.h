// Samples in tar archives, in WebDataset's layout: consecutive files with the same name up to the first dot,
// such as "cat/17.jpg" and "cat/17.cls".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/pictures/picture_source.h"

namespace dtrain {

struct TarSamples {
  std::shared_ptr<const PictureSource> pictures;
  std::vector<std::string> targets;  // content of each sample's target file, without surrounding spaces
};

/// Lists the samples in the archives at these paths that have an image (.jpg, .jpeg, .png, .bmp), in order.
/// `target` is the extension of the target's file ("cls"); "" if no targets are wanted. Throws UserError,
/// with path and byte offset, for an incomplete archive, for a sample without a target, and for a sample with
/// two targets or two images.
TarSamples list_tar_samples(const std::vector<std::string>& paths, const std::string& target);

}  // namespace dtrain
