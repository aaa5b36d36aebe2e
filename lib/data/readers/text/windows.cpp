#include "data/readers/text/windows.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

using TextFiles = std::vector<std::shared_ptr<const TextFile>>;

/// The tokens of all files. If the tokens are bytes, they are read from the files. Otherwise their ids are
/// stored in 16 bits if all ids fit into 16 bits, else in 32 bits.
class TokenStore {
 public:
  TokenStore(TextFiles files, const Tokenizer& tokenizer)
      : is_narrow_(tokenizer.size() <= std::numeric_limits<uint16_t>::max()) {
    for (const auto& file : files) {
      begins_.push_back(end());
      if (tokenizer.learned().kind == TokenKind::bytes) {
        sizes_.push_back(static_cast<int64_t>(file->text().size()));
        continue;
      }
      const std::vector<int32_t> ids = tokenizer.encode(file->text());
      file->check();
      sizes_.push_back(static_cast<int64_t>(ids.size()));
      if (is_narrow_)
        narrow_.insert(narrow_.end(), ids.begin(), ids.end());
      else
        wide_.insert(wide_.end(), ids.begin(), ids.end());
    }
    if (tokenizer.learned().kind == TokenKind::bytes) files_ = std::move(files);
  }

  const std::vector<int64_t>& sizes() const { return sizes_; }  // number of tokens in each file
  bool in_memory() const {
    return std::none_of(files_.begin(), files_.end(), [](const auto& file) { return file->is_mapped(); });
  }
  void check() const {
    for (const auto& file : files_) file->check();
  }
  void read(size_t file, int64_t first, int64_t count, int32_t* dst) const {
    const auto at = begins_[file] + static_cast<size_t>(first);
    if (!files_.empty()) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(files_[file]->text().data());
      std::copy_n(bytes + first, count, dst);
    } else if (is_narrow_) {
      std::copy_n(narrow_.data() + at, count, dst);
    } else {
      std::copy_n(wide_.data() + at, count, dst);
    }
  }

 private:
  size_t end() const { return narrow_.size() + wide_.size(); }

  bool is_narrow_;
  TextFiles files_;  // the files, if the tokens are bytes
  std::vector<uint16_t> narrow_;
  std::vector<int32_t> wide_;
  std::vector<size_t> begins_;
  std::vector<int64_t> sizes_;
};

/// The windows of all files, numbered file by file.
struct WindowIndex {
  WindowIndex(const std::vector<int64_t>& sizes, const WindowShape& wanted) : shape(wanted) {
    for (const int64_t size : sizes) {
      ends.push_back((ends.empty() ? 0 : ends.back()) +
                     (size < tokens() ? 0 : (size - tokens()) / shape.stride + 1));
    }
  }
  /// Returns the number of tokens in a window, including the target of its last token.
  int64_t tokens() const { return shape.length + (shape.has_targets ? 1 : 0); }
  int64_t count() const { return ends.back(); }

  WindowShape shape;
  /// For each file, the number of windows in this file and in all files before it.
  std::vector<int64_t> ends;
};

class WindowColumn final : public Column {
 public:
  /// `ahead` is 1 for the column of targets (the next tokens), and 0 for the column of inputs.
  WindowColumn(std::string name, std::shared_ptr<const TokenStore> store,
               std::shared_ptr<const WindowIndex> index, int64_t ahead)
      : spec_{std::move(name), Shape{index->shape.length}, DType::int32},
        store_(std::move(store)),
        index_(std::move(index)),
        ahead_(ahead) {}

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return index_->count(); }
  bool in_memory() const override { return store_->in_memory(); }
  void check() const override { store_->check(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    auto* out = static_cast<int32_t*>(dst);
    for (const int64_t row : rows) {
      const auto& ends = index_->ends;
      const auto file = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), row) - ends.begin());
      const int64_t number = row - (file == 0 ? 0 : ends[file - 1]);
      store_->read(file, number * index_->shape.stride + ahead_, index_->shape.length, out);
      out += index_->shape.length;
    }
  }

 private:
  TensorSpec spec_;
  std::shared_ptr<const TokenStore> store_;
  std::shared_ptr<const WindowIndex> index_;
  int64_t ahead_;
};

/// Returns a warning if some files are too short for a window; else "".
std::string warning_of_short_files(const TextFiles& files, const TokenStore& store, int64_t needed) {
  std::string first;
  size_t count = 0;
  for (size_t i = 0; i < files.size(); ++i)
    if (store.sizes()[i] < needed && ++count == 1)
      first = fmt::format("{} with {} tokens", files[i]->path(), store.sizes()[i]);
  if (count == 0) return "";
  return fmt::format(
      "{} of {} files have fewer than the {} tokens that a window needs, and are left out; the first is {}",
      count, files.size(), needed, first);
}

}  // namespace

SourceColumns open_windows(const TextFiles& files, const std::shared_ptr<const Tokenizer>& tokenizer,
                           const WindowShape& shape) {
  const auto store = std::make_shared<const TokenStore>(files, *tokenizer);
  const auto index = std::make_shared<const WindowIndex>(store->sizes(), shape);
  const std::string& name = files.front()->path();
  if (index->count() == 0)
    throw UserError(fmt::format(
        "{}: expected at least {} tokens (sequence_length {}{}), found {}{}", name, index->tokens(),
        shape.length, shape.has_targets ? " and the target of the last token" : "",
        *std::max_element(store->sizes().begin(), store->sizes().end()),
        files.size() > 1 ? fmt::format(" in the longest of {} files", files.size()) : ""));
  SourceColumns source(Columns{std::make_shared<WindowColumn>(name, store, index, 0)});
  if (shape.has_targets) source.columns.push_back(std::make_shared<WindowColumn>(name, store, index, 1));
  const std::string warning = warning_of_short_files(files, *store, index->tokens());
  if (!warning.empty()) source.warnings.push_back(warning);
  return source;
}

}  // namespace dtrain
