// Analyzes a folder with two parallel folders of images, inputs and targets, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/pictures/mask_classes.h"
#include "profile/picture_look.h"

namespace dtrain {

/// Paths of two folders in which an image and its target have the same name, apart from the extension.
struct PairedFolders {
  std::string images, targets;  // "" if the split has no folders
};

struct InspectedPairs {
  PairedFolders train, validation, test;
  int64_t pairs = 0;            // number of pairs in `train`
  PictureLook images, targets;  // findings about the pairs of `train`
  /// Classes of the targets' pixels; nullopt if the targets are images.
  std::optional<MaskClasses> classes;
  int64_t class_count = 0;
  bool are_called_masks = false;  // whether the targets' folder has a name for masks
  int64_t examined = 0;           // number of targets whose pixels were read

  bool has_masks() const { return classes.has_value(); }
};

/// Returns nullopt unless the folder, or the folders of its splits, contain two parallel folders of images.
/// They are recognized by names (images and masks, noisy and clean, ...), or because one of two folders
/// contains masks of the images in the other. Throws UserError if the names say that the folders are
/// parallel, but not all files match, and for masks that are JPEG files. Folders that could also be classes,
/// such as noisy and clean, are parallel only if more than half of their files match.
std::optional<InspectedPairs> inspect_pairs(const std::string& folder);

/// For a folder for which inspect_pairs() returned nullopt, returns a warning if its two class folders have
/// the names of images and their targets; else "".
std::string describe_suspected_pairs(const std::string& folder);

}  // namespace dtrain
