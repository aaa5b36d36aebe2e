// Columns of images that are decoded when they are read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/columns/column.h"
#include "data/pictures/mask_classes.h"
#include "data/pictures/picture_options.h"
#include "data/pictures/picture_source.h"

namespace dtrain {

/// The conversion of an image to a row of a column.
struct PictureRow {
  PictureForm form;
  /// The classes of a mask, whose row has class numbers; nullopt for other images.
  std::optional<MaskClasses> classes = {};

  /// Returns [height, width] for a mask, whose row has class numbers, else [height, width, channels].
  Shape shape() const;
  /// Decodes an image to a row of bytes. Throws UserError like decode_picture(), and for a mask's color that
  /// belongs to no class.
  void decode(std::span<const uint8_t> file, uint8_t* dst) const;
  /// Returns the bytes that decode() needs besides the row and the memory of decode_picture().
  size_t working_bytes() const;
};

/// The images of a source that can be decoded, and facts about the images that were left out.
struct CheckedPictures {
  std::vector<int64_t> kept;  // numbers of the images that can be decoded
  int64_t largest = 0;        // size of the largest encoded image, in bytes
  int64_t skipped = 0;
  std::string first_skipped;  // name and problem of the first image that was left out
  std::string advice;  // appended to the error about an image that turns out to be damaged when it is read
};

/// Returns a column with rows of bytes as `row` describes them, one for each kept image of the source.
/// Reading throws UserError with the name of a damaged image, and Error for an image that has changed since
/// the source was made.
std::shared_ptr<const Column> picture_column(std::string name, std::shared_ptr<const PictureSource> source,
                                             CheckedPictures pictures, const PictureRow& row);

/// Reads the header of an image. Throws UserError with the image's name, as decoding it would. Sets `*bytes`
/// to the size of the encoded image.
PictureHeader header_of_picture(const PictureSource& source, int64_t i, int64_t* bytes = nullptr);

/// Checks the images on several threads. OnError::error reads their headers, and throws UserError for the
/// first image that is invalid or too large, with the number of further ones. OnError::skip decodes them
/// completely, and leaves out images that cannot be decoded. Throws UserError if no image in `where` is left.
CheckedPictures check_pictures(const PictureSource& source, const std::string& where, const PictureRow& row,
                               OnError on_error, bool can_skip);

/// Returns the end of a message about one image if `others` more images have the same problem: "; 3 more
/// cannot be read", and, if `can_skip` is true, the option that leaves them out. Returns "" if there is
/// nothing to append.
std::string describe_others(int64_t others, const std::string& how, bool can_skip);

}  // namespace dtrain
