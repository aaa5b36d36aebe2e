// Reads samples from tar archives in the layout of WebDataset. The files of a sample follow each other in the
// archive, and their names are equal up to the first dot. Example: "cat/17.jpg" and "cat/17.cls".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/pictures/picture_source.h"

namespace dtrain {

struct TarSamples {
  std::shared_ptr<const PictureSource> pictures;
  std::vector<std::string> targets;  // content of the target file of each sample, without blanks at both ends
};

/// Lists the samples in the archives at these paths, in order. A sample must have an image (.jpg, .jpeg, .png
/// or .bmp). `target` is the extension of the target files, such as "cls"; it is "" if targets are not
/// needed. Throws UserError, with the path and the byte offset, if an archive is incomplete, if a sample has
/// no target, or if a sample has two targets or two images.
TarSamples list_tar_samples(const std::vector<std::string>& paths, const std::string& target);

}  // namespace dtrain
