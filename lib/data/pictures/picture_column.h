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
  /// The classes of a mask. The row of a mask consists of class numbers. Nullopt for images that are not
  /// masks.
  std::optional<MaskClasses> classes = {};

  /// Returns the shape of the row: [height, width] for a mask, [height, width, channels] for any other image.
  Shape shape() const;
  /// Decodes an image to a row of bytes. Throws UserError in the same cases as decode_picture(), and if a
  /// color of a mask belongs to no class.
  void decode(std::span<const uint8_t> file, uint8_t* dst) const;
  /// Returns the number of bytes that decode() allocates, in addition to the row and to the memory of
  /// decode_picture().
  size_t working_bytes() const;
};

/// The images of a source that can be decoded, and information about the images that were left out.
struct CheckedPictures {
  std::vector<int64_t> kept;  // indices of the images that can be decoded
  int64_t largest = 0;        // size of the largest encoded image, in bytes
  int64_t skipped = 0;
  std::string first_skipped;  // name and problem of the first image that was left out
  // Text that is appended to the error message if an image turns out to be damaged when it is read.
  std::string advice;
};

/// Returns a column with one row for each kept image of the source. `row` describes the rows. If an image is
/// damaged, reading throws UserError with the name of the image. If an image has changed since the source was
/// made, reading throws Error.
std::shared_ptr<const Column> picture_column(std::string name, std::shared_ptr<const PictureSource> source,
                                             CheckedPictures pictures, const PictureRow& row);

/// Reads the header of an image. Throws UserError with the name of the image if the header is invalid. Sets
/// `*bytes` to the size of the encoded image.
PictureHeader header_of_picture(const PictureSource& source, int64_t i, int64_t* bytes = nullptr);

/// Checks the images on several threads. With OnError::error, reads only the headers, and throws UserError if
/// an image is invalid or too large. The message names the first such image and says how many other images
/// have problems. With OnError::skip, decodes the images completely and leaves out those that cannot be
/// decoded. Throws UserError if no image remains; `where` is the location of the images in this message.
CheckedPictures check_pictures(const PictureSource& source, const std::string& where, const PictureRow& row,
                               OnError on_error, bool can_skip);

/// Returns the end of a message about one image. Example: "; 3 more cannot be read" if `others` is 3 and
/// `how` is "cannot be read". If `can_skip` is true, the text also names the option that leaves these images
/// out. Returns "" if there is nothing to append.
std::string describe_others(int64_t others, const std::string& how, bool can_skip);

}  // namespace dtrain
