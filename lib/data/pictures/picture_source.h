// Sources of encoded images: separate files, or parts of one large file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

/// Reads encoded images by number. Safe to read from several threads.
class PictureSource {
 public:
  virtual ~PictureSource() = default;
  virtual int64_t size() const = 0;
  /// Returns the image's name for messages: its path, or its position in a file of many images.
  virtual std::string name(int64_t i) const = 0;
  /// Copies the first `most` bytes of the image (all of them if it is shorter) to `bytes`, and returns its
  /// full size. Throws UserError, with its name, if it cannot be read or is larger than allowed, and Error if
  /// its file has changed since the source was made.
  virtual int64_t read(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const = 0;
  /// Throws Error if data read so far may differ from the file's content when the source was made.
  virtual void check() const {}
};

/// Returns how many bytes to read of an image of `length` bytes if `most` are wanted. Throws UserError if the
/// image has more than 1 GiB, the most that is read at once.
int64_t picture_bytes_to_read(const std::string& name, int64_t length, int64_t most);

}  // namespace dtrain
