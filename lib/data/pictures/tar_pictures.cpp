#include "data/pictures/tar_pictures.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/utf8.h"
#include "data/files/folder_listing.h"
#include "data/loader/parallel.h"
#include "data/pictures/picture_files.h"
#include "data/pictures/tar_index.h"

namespace dtrain {

namespace {

constexpr std::array<std::string_view, 4> kPictureEndings{"jpg", "jpeg", "png", "bmp"};

struct TarPicture {
  std::string member;
  int64_t offset = 0, bytes = 0;
  size_t archive = 0;
};

class TarPictures final : public PictureSource {
 public:
  TarPictures(std::vector<ListedFile> archives, std::vector<TarPicture> pictures)
      : archives_(std::move(archives)), pictures_(std::move(pictures)) {}

  int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
  std::string name(int64_t i) const override {
    const TarPicture& one = pictures_[static_cast<size_t>(i)];
    return archives_[one.archive].path + ":" + one.member;
  }
  int64_t read(int64_t i, int64_t most, std::vector<uint8_t>& bytes) const override {
    const TarPicture& one = pictures_[static_cast<size_t>(i)];
    const ListedFile& archive = archives_[one.archive];
    return read_picture_at(*open_listed(archive.path, archive), name(i), one.offset, one.bytes, most, bytes);
  }

 private:
  std::vector<ListedFile> archives_;
  std::vector<TarPicture> pictures_;
};

/// The two parts of the name of an archive member. `key` is the name up to the first dot after the last
/// slash, and `ending` is the rest after this dot, in lower case. Example: "cat/17" and "jpg". sample_name()
/// returns nullopt for members that are not part of a sample: hidden files, names without a dot, and names
/// that begin with two underscores, such as "__meta__.json".
struct SampleName {
  std::string key, ending;
};
std::optional<SampleName> sample_name(const std::string& member) {
  const size_t last = member.rfind('/') + 1;  // npos + 1 is 0
  const size_t dot = member.find('.', last);
  if (dot == std::string::npos || dot == last || member.compare(last, 2, "__") == 0) return std::nullopt;
  return SampleName{member.substr(0, dot), in_small_letters(member.substr(dot + 1))};
}

std::string without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks{" \t\r\n\0", 5};
  const size_t from = std::min(text.find_first_not_of(kBlanks), text.size());
  return std::string(text.substr(from, text.find_last_not_of(kBlanks) + 1 - from));
}

struct ArchiveSamples {
  std::vector<TarPicture> pictures;
  std::vector<std::string> targets;
};

/// Finds the samples of one archive. The archive remains open.
class ArchiveListing {
 public:
  ArchiveListing(const ListedFile& archive, size_t number, std::string target)
      : file_(open_listed(archive.path, archive)),
        number_(number),
        target_(in_small_letters(std::move(target))) {}

  ArchiveSamples run() {
    for (const TarMember& member : list_tar(*file_))
      if (const auto name = sample_name(member.name)) take(member, *name);
    finish();
    return std::move(samples_);
  }

 private:
  [[noreturn]] void fail(const TarMember& at, const std::string& message) const {
    throw UserError(
        fmt::format("{}:{}: {} (its header is at byte {})", file_->path(), at.name, message, at.header));
  }

  void take(const TarMember& member, const SampleName& name) {
    if (name.key != key_) {
      finish();
      key_ = name.key;
    }
    endings_.insert(name.ending);
    const bool is_picture =
        std::find(kPictureEndings.begin(), kPictureEndings.end(), name.ending) != kPictureEndings.end();
    if (!is_picture && (target_.empty() || name.ending != target_)) return;
    if (!member.is_file) fail(member, "this must be a file, but is a link");
    auto& place = is_picture ? picture_ : label_;
    if (place)
      fail(member, fmt::format("each sample must have one {}, but there is a second one: {}",
                               is_picture ? "image" : "target", place->name));
    place = member;
  }

  /// Ends the current sample. If the sample has neither an image nor a target, its files are ignored. Throws
  /// UserError if the sample has a target but no image.
  void finish() {
    if (picture_) {
      samples_.pictures.push_back({picture_->name, picture_->offset, picture_->bytes, number_});
      if (!target_.empty()) samples_.targets.push_back(read_label());
    } else if (label_) {
      fail(*label_, fmt::format("this sample has no image ({}); the files of a sample must follow each other "
                                "in the archive, as in archives that were created with `tar --sort=name`",
                                fmt::join(kPictureEndings, ", ")));
    }
    picture_.reset();
    label_.reset();
    endings_.clear();
  }

  std::string read_label() const {
    constexpr int64_t kMost = 4096;
    if (!label_)
      fail(*picture_, fmt::format("this sample has no target file {}.{}, only files with the extensions {}; "
                                  "set 'target' to the extension of the target files",
                                  key_, target_, fmt::join(endings_, ", ")));
    if (label_->bytes > kMost)
      fail(*label_,
           fmt::format("the class in a target file may have at most {} bytes, but this file has {} bytes",
                       kMost, label_->bytes));
    std::string text(static_cast<size_t>(label_->bytes), '\0');
    file_->read(label_->offset, text.data(), text.size());
    text = without_blanks(text);
    if (text.empty()) fail(*label_, "this file must contain a class, but is empty");
    return text;
  }

  std::unique_ptr<const InputFile> file_;
  size_t number_;
  std::string target_;
  std::string key_;
  std::set<std::string> endings_;
  std::optional<TarMember> picture_, label_;
  ArchiveSamples samples_;
};

}  // namespace

TarSamples list_tar_samples(const std::vector<std::string>& paths, const std::string& target) {
  std::vector<ListedFile> archives = list_files(paths);
  std::vector<ArchiveSamples> parts(paths.size());
  run_blocks(static_cast<int64_t>(paths.size()), [&](int64_t i) {
    const auto number = static_cast<size_t>(i);
    parts[number] = ArchiveListing(archives[number], number, target).run();
  });
  TarSamples all;
  std::vector<TarPicture> pictures;
  for (ArchiveSamples& part : parts) {
    if (part.pictures.empty())
      throw UserError(fmt::format("{}: no samples with images ({}) found in this archive",
                                  archives[static_cast<size_t>(&part - parts.data())].path,
                                  fmt::join(kPictureEndings, ", ")));
    std::move(part.pictures.begin(), part.pictures.end(), std::back_inserter(pictures));
    std::move(part.targets.begin(), part.targets.end(), std::back_inserter(all.targets));
  }
  all.pictures = std::make_shared<TarPictures>(std::move(archives), std::move(pictures));
  return all;
}

}  // namespace dtrain
