#include "data/pictures/picture_column.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "data/input_file.h"
#include "data/parallel.h"

namespace dtrain {

namespace {

constexpr int64_t kMostFileBytes = int64_t{1} << 30;  // as much is read at once

std::unique_ptr<const InputFile> open_listed(const PictureList& list, size_t i) {
  const ListedFile& listed = list.files[i];
  const std::string path = list.path(i);
  if (!listed.problem.empty()) throw UserError(path + ": " + listed.problem);
  auto file = std::make_unique<const InputFile>(path);
  if (file->size() != listed.bytes || file->written_ns() != listed.written_ns)
    throw Error(fmt::format("{}: the file was changed while it was in use", path));
  if (file->size() > kMostFileBytes)
    throw UserError(
        fmt::format("{}: expected a picture of at most 1 GiB, found {} bytes", path, file->size()));
  return file;
}

/// Calls `work` with the first bytes of the file, of its path in messages.
template <class Work>
void with_bytes(const InputFile& file, int64_t bytes, Work work) {
  constexpr int64_t kKept = 16 << 20;  // larger memory than a thread keeps for its next picture
  thread_local std::vector<uint8_t> kept;
  std::vector<uint8_t> large;
  std::vector<uint8_t>& memory = bytes > kKept ? large : kept;
  memory.resize(static_cast<size_t>(bytes));
  file.read(0, memory.data(), memory.size());
  try {
    work(std::span<const uint8_t>(memory));
  } catch (const UserError& error) {
    throw UserError(file.path() + ": " + error.what());
  }
}

void decode_listed(const PictureList& list, size_t i, const PictureForm& form, uint8_t* dst) {
  const auto file = open_listed(list, i);
  with_bytes(*file, file->size(), [&](auto bytes) { decode_picture(bytes, form, dst); });
}

class PictureColumn final : public Column {
 public:
  PictureColumn(std::string name, std::shared_ptr<const PictureList> list, const PictureForm& form)
      : spec_{std::move(name), Shape{form.height, form.width, form.channels}, DType::uint8},
        list_(std::move(list)),
        form_(form) {}

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return static_cast<int64_t>(list_->files.size()); }
  bool in_memory() const override { return false; }
  /// The largest file.
  size_t working_bytes() const override {
    int64_t most = 0;
    for (const ListedFile& file : list_->files) most = std::max(most, file.bytes);
    return static_cast<size_t>(std::min(most, kMostFileBytes));
  }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    auto* out = static_cast<uint8_t*>(dst);
    for (const int64_t row : rows) {
      decode_listed(*list_, static_cast<size_t>(row), form_, out);
      out += form_.bytes();
    }
  }

 private:
  TensorSpec spec_;
  std::shared_ptr<const PictureList> list_;
  PictureForm form_;
};

}  // namespace

std::shared_ptr<const Column> picture_column(std::string name, std::shared_ptr<const PictureList> list,
                                             const PictureForm& form) {
  return std::make_shared<PictureColumn>(std::move(name), std::move(list), form);
}

PictureHeader header_of_picture(const PictureList& list, size_t i) {
  constexpr int64_t kStart = 16 << 10;
  const auto file = open_listed(list, i);
  PictureHeader header;
  const auto read = [&](auto bytes) {
    header = read_picture_header(bytes, static_cast<size_t>(file->size()));
  };
  if (file->size() > kStart) {
    try {
      with_bytes(*file, kStart, read);
      return header;
    } catch (const UserError&) {  // a header may be longer: the whole decides
    }
  }
  with_bytes(*file, file->size(), read);
  return header;
}

void check_pictures(PictureList& list, const PictureForm& form, OnError on_error) {
  const auto count = static_cast<int64_t>(list.files.size());
  if (on_error == OnError::error)
    return run_blocks(count, [&](int64_t i) { header_of_picture(list, static_cast<size_t>(i)); });
  std::vector<std::string> problems(list.files.size());
  run_blocks(count, [&](int64_t block) {
    const auto i = static_cast<size_t>(block);
    thread_local std::vector<uint8_t> pixels;
    pixels.resize(form.bytes());
    try {
      decode_listed(list, i, form, pixels.data());
    } catch (const UserError& error) {
      problems[i] = error.what();
    }
  });
  std::vector<bool> is_good;
  for (const std::string& problem : problems) {
    is_good.push_back(problem.empty());
    if (!problem.empty() && list.first_skipped.empty()) list.first_skipped = problem;
  }
  list.keep(is_good);
  if (list.files.empty())
    throw UserError(fmt::format("{}: expected pictures, found none of {} to be one ({})", list.folder,
                                list.skipped, list.first_skipped));
}

}  // namespace dtrain
