// Makes columns from images and their known targets, for the readers and for `dtrain predict`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/tensor_spec.h"
#include "data/columns/source_columns.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_list.h"
#include "data/pictures/picture_options.h"
#include "data/pictures/picture_source.h"

namespace dtrain {

/// Targets that are images: image i is the target of image i of the set.
struct TargetPictures {
  std::string where;  // folder or file that contains or lists them
  std::shared_ptr<const PictureSource> pictures;
  PictureRow row;
};

/// The images of a data set.
struct PictureSet {
  std::string where;  // folder or file that contains or lists them
  std::shared_ptr<const PictureSource> pictures;
  /// One row per image: columns of the targets, weights, and names. If the names are null, the images' own
  /// names (paths) are used.
  SourceColumns known;
  /// Whether messages may advise `on_error: skip`, an option of readers in the configuration.
  bool can_skip = false;
  std::optional<TargetPictures> targets = {};
};

PictureSet picture_set(FileListing files);
/// Returns the set of these images, with their class indices (int32) as the target.
PictureSet picture_set(PictureClasses classes);

/// Returns the pixel format given by the options, and by the model's input for options that are not set.
/// Throws UserError if neither determines it.
PictureForm picture_form(const PictureOptions& options, const TensorSpec& input);

/// Returns a column of images for `input`, then a column of target images if the set has them, and then the
/// known columns, all without the images that are left out. Checks the images as check_pictures() does.
/// Throws UserError for a mask that has another size than its image.
SourceColumns open_pictures(PictureSet set, const PictureOptions& options, const TensorSpec& input);

/// Like open_pictures(), for the path of a folder or an image, or for the paths of several images. The result
/// has no targets.
SourceColumns open_pictures_at(const std::vector<std::string>& paths, const PictureOptions& options,
                               const TensorSpec& input);

}  // namespace dtrain
