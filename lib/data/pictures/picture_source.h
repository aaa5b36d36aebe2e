// Sources of encoded images: separate files, or parts of one large file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

/// Reads encoded images by index. Safe to read from several threads.
class PictureSource {
 public:
  virtual ~PictureSource() = default;
  virtual int64_t size() const = 0;
  /// Returns the name of the image for messages. This is its path or, if a file contains many images, its
  /// position in this file.
  virtual std::string name(int64_t i) const = 0;
  /// Copies the first `most` bytes of the image to `bytes`, or all bytes if the image is shorter. Returns the
  /// full size of the image in bytes. Throws UserError with the name of the image if the image cannot be read
  /// or is larger than allowed. Throws Error if the file has changed since the source was made.
  virtual int64_t read(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const = 0;
  /// Throws Error if a file was changed after the source was made. Data that were read before may then be
  /// wrong.
  virtual void check() const {}
};

/// Returns how many bytes to read if an image has `length` bytes: all of them, but at most `most`. Throws
/// UserError if the image is larger than 1 GiB.
int64_t picture_bytes_to_read(const std::string& name, int64_t length, int64_t most);

}  // namespace dtrain
