// Where encoded pictures come from: files of their own, or places in a file of many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

/// Gives the bytes of pictures by number, as they are encoded. Safe to read from several threads.
class PictureSource {
 public:
  virtual ~PictureSource() = default;
  virtual int64_t size() const = 0;
  /// What messages call the picture: its path, or where it stands in a file of many.
  virtual std::string name(int64_t i) const = 0;
  /// Puts the picture's first `most` bytes into `bytes`, all of them where it is shorter, and returns how
  /// many it has. Throws UserError, with its name, where it cannot be read or is longer than any may be, and
  /// Error where its file was changed since the source was made.
  virtual int64_t read(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const = 0;
  /// Throws Error where what was read may not be what the file held when the source was made.
  virtual void check() const {}
};

/// How many bytes to read of a picture that has `length`, of which `most` are wanted. Throws UserError where
/// it has more than 1 GiB, as much as is read at once.
int64_t picture_bytes_to_read(const std::string& name, int64_t length, int64_t most);

}  // namespace dtrain
