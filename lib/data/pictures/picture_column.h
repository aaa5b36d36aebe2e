// Columns of pictures, decoded when they are asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/columns/column.h"
#include "data/pictures/picture_options.h"
#include "data/pictures/picture_source.h"

namespace dtrain {

/// The pictures of a source that can be decoded, and what became of the others.
struct CheckedPictures {
  std::vector<int64_t> kept;  // their numbers
  int64_t largest = 0;        // bytes, as it is encoded
  int64_t skipped = 0;
  std::string first_skipped;  // its name and what was wrong
  std::string advice;         // behind what is said of one that turns out to be damaged when it is read
};

/// Rows of [height, width, channels] bytes, of the source's pictures that were kept. Reading throws UserError
/// with the name of a picture that is damaged, and Error for one that was changed since the source was made.
std::shared_ptr<const Column> picture_column(std::string name, std::shared_ptr<const PictureSource> source,
                                             CheckedPictures pictures, const PictureForm& form);

/// The header of a picture. Throws UserError with its name, as decoding would for it. `bytes` becomes
/// how many it has.
PictureHeader header_of_picture(const PictureSource& source, int64_t i, int64_t* bytes = nullptr);

/// Looks at the pictures by several threads. OnError::error: at their headers; throws UserError for the first
/// one that is none or too large, with how many others are. OnError::skip: decodes them whole, and leaves out
/// those that cannot be. Throws UserError where none is left of those that `where` holds.
CheckedPictures check_pictures(const PictureSource& source, const std::string& where, const PictureForm& form,
                               OnError on_error, bool can_skip);

/// What a message about one picture adds where `others` are as bad: "; 3 more cannot be read"; and the option
/// that leaves them out, where `can_skip` says that its reader may be given that. "" where there is nothing
/// to add.
std::string describe_others(int64_t others, const std::string& how, bool can_skip);

}  // namespace dtrain
