// From pictures and what is known of each to columns, for the readers and for `dtrain predict`.
#pragma once

#include <memory>
#include <string>

#include "base/tensor_spec.h"
#include "data/columns/source_columns.h"
#include "data/pictures/picture_list.h"
#include "data/pictures/picture_options.h"
#include "data/pictures/picture_source.h"

namespace dtrain {

/// The pictures of a data set.
struct PictureSet {
  std::string where;  // the folder or file that holds or names them
  std::shared_ptr<const PictureSource> pictures;
  /// A row for each picture: the targets' columns, weights, and names; null stands for the pictures' own
  /// names, which are paths.
  SourceColumns known;
  /// Whether its user may say on_error: skip, as for a reader of the configuration: for messages.
  bool can_skip = false;
};

PictureSet picture_set(FileListing files);
/// With class numbers (int32) as the target.
PictureSet picture_set(PictureClasses classes);

/// The pixels that the options, and the input where they say nothing, want. Throws UserError where neither
/// says.
PictureForm picture_form(const PictureOptions& options, const TensorSpec& input);

/// A column of pictures for `input`, and what is known of those that are kept. Looks at the pictures, as
/// check_pictures().
SourceColumns open_pictures(PictureSet set, const PictureOptions& options, const TensorSpec& input);

/// The same for a path that is a folder or a picture, or for several of pictures, of which nothing is known.
SourceColumns open_pictures_at(const std::vector<std::string>& paths, const PictureOptions& options,
                               const TensorSpec& input);

}  // namespace dtrain
