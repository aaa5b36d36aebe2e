// Targets that are images: masks, whose pixels represent classes, and images whose pixel values the model
// predicts.
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
  std::optional<std::string> directory;  // folder of the target images; unset if a table lists them
  std::optional<MaskClasses> classes;    // classes of masks; nullopt for other images
  std::optional<Size2> size;
  std::optional<int64_t> channels;

  static const Schema<TargetImages>& schema();
  TargetPicture pixels() const { return classes ? TargetPicture::classes : TargetPicture::colors; }
};

/// Returns how target images are converted to rows. If the options do not give a size, the size of `image`
/// (the form of the stored input images) is multiplied by the ratio of target size to input size in the
/// request. The sizes in the request cannot be used directly, because they are smaller than the stored sizes
/// if random_crop crops the images. Throws UserError if the resulting size is not a whole number.
PictureRow target_row(const TargetImages& options, const PictureForm& image, const ReadRequest& request);

/// Counts of the image names below two folders. A name is a relative path without the extension.
struct NameCounts {
  int64_t shared = 0;  // names below both folders
  int64_t all = 0;     // names below at least one folder
};

/// Counts the names of the images below two folders. Throws UserError if a folder has no images, or has two
/// images with the same name.
NameCounts count_names(const std::string& folder, const std::string& target_folder);

/// Lists the images below `folder`. The target of an image is the image below `target_folder` that has the
/// same name, apart from the extension. Throws UserError, with up to ten names, if images have no target or
/// targets have no image.
PictureSet list_pairs(const std::string& folder, const std::string& target_folder);

/// Calls list_pairs() for two folders below `folder`, and returns its result. The names of the two folders
/// are the parts in which `images` and `targets`, the folders in the configuration, differ. For example, for
/// data/train/images and data/train/masks, the two folders are called images and masks. For data/images/train
/// and data/masks/train, they are called images/train and masks/train or, if these do not exist, images and
/// masks. Throws UserError if a folder does not exist.
PictureSet list_pairs_below(const std::string& folder, const std::string& images, const std::string& targets);

}  // namespace dtrain
