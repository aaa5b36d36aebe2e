// Samples in tar archives, as WebDataset has them: files that follow one another and have one name up to the
// first dot, "cat/17.jpg" and "cat/17.cls".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/pictures/picture_source.h"

namespace dtrain {

struct TarSamples {
  std::shared_ptr<const PictureSource> pictures;
  std::vector<std::string> targets;  // what the target's file of each sample says, without blanks around it
};

/// The samples of archives at these paths, in order: those that have a picture (.jpg, .jpeg, .png, .bmp).
/// `target` is what the name of the target's file ends in ("cls"); "" where no targets are wanted. Throws
/// UserError, with path and byte, for an archive that is not whole, a sample without a target, and one with
/// two.
TarSamples list_tar_samples(const std::vector<std::string>& paths, const std::string& target);

}  // namespace dtrain
