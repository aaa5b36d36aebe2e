// From a list of pictures to columns, for the reader and for `dtrain predict`, which is given a folder.
#pragma once

#include "base/tensor_spec.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_options.h"
#include "data/source_columns.h"

namespace dtrain {

/// The pixels that the options, and the input where they say nothing, want. Throws UserError where neither
/// says.
PictureForm picture_form(const PictureOptions& options, const TensorSpec& input);

/// A column of pictures for `input`, one of class numbers (int32) where the list has classes, and the paths
/// as names. Looks at the pictures, as check_pictures().
SourceColumns open_pictures(PictureList list, const PictureOptions& options, const TensorSpec& input);

/// The same for a path that is a folder or a picture, without classes.
SourceColumns open_pictures_at(const std::string& path, const PictureOptions& options,
                               const TensorSpec& input);

}  // namespace dtrain
