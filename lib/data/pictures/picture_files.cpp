#include "data/pictures/picture_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "data/files/input_file.h"

namespace dtrain {

namespace {

class PictureFiles final : public PictureSource {
 public:
  explicit PictureFiles(FileListing listing) : listing_(std::move(listing)) {}

  int64_t size() const override { return static_cast<int64_t>(listing_.files.size()); }
  std::string name(int64_t i) const override { return path_in(listing_.folder, listed(i).path); }
  int64_t read(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const override {
    const auto file = open_listed(name(i), listed(i));
    return read_picture_at(*file, file->path(), 0, file->size(), most, bytes);
  }

 private:
  const ListedFile& listed(int64_t i) const { return listing_.files[static_cast<size_t>(i)]; }

  FileListing listing_;
};

}  // namespace

std::shared_ptr<const PictureSource> picture_files(FileListing listing) {
  return std::make_shared<PictureFiles>(std::move(listing));
}

int64_t picture_bytes_to_read(const std::string& name, int64_t length, int64_t most) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (length > kMost)
    throw UserError(
        fmt::format("{}: an image may have at most 1 GiB, but this image has {} bytes", name, length));
  return std::min(length, most);
}

int64_t read_picture_at(const InputFile& file, const std::string& name, int64_t offset, int64_t bytes,
                        int64_t most, std::vector<uint8_t>& dst) {
  dst.resize(static_cast<size_t>(picture_bytes_to_read(name, bytes, most)));
  file.read(offset, dst.data(), dst.size());
  return bytes;
}

}  // namespace dtrain
