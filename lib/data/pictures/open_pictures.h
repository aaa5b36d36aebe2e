// Makes columns from images and from the targets that belong to them. Used by the readers and by `dtrain
// predict`.
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

/// Targets that are images. Image i is the target of image i of the PictureSet.
struct TargetPictures {
  std::string where;  // folder or file that contains or lists the images
  std::shared_ptr<const PictureSource> pictures;
  PictureRow row;
};

/// The images of a data set.
struct PictureSet {
  std::string where;  // folder or file that contains or lists the images
  std::shared_ptr<const PictureSource> pictures;
  /// Columns that are known before the images are read, with one row per image: targets, weights, and names.
  /// If the names are null, the paths of the images are used as names.
  SourceColumns known;
  /// Whether messages may recommend `on_error: skip`. This option exists only for readers in a configuration.
  bool can_skip = false;
  std::optional<TargetPictures> targets = {};
};

PictureSet picture_set(FileListing files);
/// Returns the set of these images, with their class indices (int32) as the target.
PictureSet picture_set(PictureClasses classes);

/// Returns the size and the number of channels to which images are converted. They are taken from the options
/// or, if an option is not set, from the shape of the model's input. Throws UserError if neither determines
/// them.
PictureForm picture_form(const PictureOptions& options, const TensorSpec& input);

/// Returns a column of images for `input`, then a column of target images if the set has them, and then the
/// known columns. Images that are left out have no row in any column. The images are checked by
/// check_pictures(). Throws UserError if a mask does not have the size of its image.
SourceColumns open_pictures(PictureSet set, const PictureOptions& options, const TensorSpec& input);

/// Like open_pictures(), but takes the path of a folder, or the paths of one or more images. The result has
/// no targets.
SourceColumns open_pictures_at(const std::vector<std::string>& paths, const PictureOptions& options,
                               const TensorSpec& input);

}  // namespace dtrain
