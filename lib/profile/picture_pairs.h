// Analyzes a folder with two parallel folders of images, inputs and targets, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/pictures/mask_classes.h"
#include "profile/picture_look.h"

namespace dtrain {

/// Paths of two parallel folders. An image and its target have the same file name, apart from the extension.
struct PairedFolders {
  std::string images, targets;  // "" if there are no folders for the split
};

struct InspectedPairs {
  PairedFolders train, validation, test;
  int64_t pairs = 0;            // number of pairs in `train`
  PictureLook images, targets;  // statistics of the images and targets of `train`
  /// The classes of the targets' pixels. nullopt if the targets are images instead of masks.
  std::optional<MaskClasses> classes;
  int64_t class_count = 0;
  bool are_called_masks = false;  // whether the folder of the targets has a name that is usual for masks
  int64_t examined = 0;           // number of targets whose pixels were read

  bool has_masks() const { return classes.has_value(); }
};

/// Analyzes the two parallel folders of images inside a folder, or inside the folders of its splits. They are
/// recognized by their names (images and masks, noisy and clean, ...), or because one of two folders contains
/// masks for the images in the other. If the names could also be those of classes, such as noisy and clean,
/// more than half of all image names must occur in both folders. Returns nullopt if there are no parallel
/// folders. Throws UserError if folders are parallel but a file has no partner, or if a mask is a JPEG file.
std::optional<InspectedPairs> inspect_pairs(const std::string& folder);

/// Returns a warning if the two class folders in a folder have names that are usual for images and their
/// targets. Otherwise returns "". Must be called only after inspect_pairs() has returned nullopt for the
/// folder.
std::string describe_suspected_pairs(const std::string& folder);

}  // namespace dtrain
