// Targets that are images: masks of classes, and images to be computed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/schema.h"
#include "data/pictures/mask_classes.h"
#include "data/pictures/open_pictures.h"
#include "data/readers/reader.h"

namespace dtrain {

/// Options for the location of each image's target, and for the meaning of the target's pixels.
struct TargetImages {
  std::optional<std::string> directory;  // folder of the targets of the images in the reader's folder
  std::optional<MaskClasses> classes;    // classes of masks; nullopt for other images
  std::optional<Size2> size;
  std::optional<int64_t> channels;

  static const Schema<TargetImages>& schema();
  TargetPicture pixels() const { return classes ? TargetPicture::classes : TargetPicture::colours; }
};

/// Returns how the targets become rows. Unless the options give a size, it is the size of the request's
/// target times the ratio of the sizes of `image` (the form of the stored images) and of the request's input.
/// (If random_crop crops the images, the request's sizes are smaller than the stored sizes.) Throws UserError
/// if the result is not a whole number.
PictureRow target_row(const TargetImages& options, const PictureForm& image, const ReadRequest& request);

/// Numbers of image names, without extensions, below two folders.
struct NameCounts {
  int64_t shared = 0;  // names below both folders
  int64_t all = 0;     // names below at least one folder
};

/// Counts the names of the images below two folders. Throws UserError if a folder has no images, or two
/// images of the same name.
NameCounts count_names(const std::string& folder, const std::string& target_folder);

/// Lists the images below `folder`, each with the image of the same name, apart from the extension, below
/// `target_folder`. Throws UserError, with up to ten names, for images without a target and targets without
/// an image.
PictureSet list_pairs(const std::string& folder, const std::string& target_folder);

/// Calls list_pairs() for two folders below `folder` that have the same names as the folders `images` and
/// `targets` of the configuration, and returns its result. For data/train/images and data/train/masks, these
/// are the folders images and masks. For data/images/train and data/masks/train, these are images/train and
/// masks/train or, if they do not exist, images and masks. Throws UserError if a folder does not exist.
PictureSet list_pairs_below(const std::string& folder, const std::string& images, const std::string& targets);

}  // namespace dtrain
