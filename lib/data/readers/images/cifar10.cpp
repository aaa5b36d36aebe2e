// CIFAR-10's binary version: records of a label byte and 3 planes (red, green, blue) of 32x32 bytes.
// https://www.cs.toronto.edu/~kriz/cifar.html
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/files/input_file.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

constexpr int64_t kPixels = 32 * 32, kRecord = 1 + 3 * kPixels;

struct Cifar10Options {
  std::vector<std::string> files;
};

/// Records of several files, concatenated.
class Records {
 public:
  explicit Records(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      auto file = std::make_unique<InputFile>(path);
      if (file->size() == 0 || file->size() % kRecord != 0)
        throw UserError(
            fmt::format("{}: the size of the file must be a positive multiple of {} bytes (the size of a "
                        "record), but the file has {} bytes",
                        path, kRecord, file->size()));
      count_ += file->size() / kRecord;
      files_.push_back(std::move(file));
    }
  }
  int64_t count() const { return count_; }
  void check() const {
    for (const auto& file : files_) file->check_unchanged();
  }

  /// Reads bytes [offset, offset + bytes) of a record.
  void read(int64_t record, int64_t offset, void* dst, size_t bytes) const {
    for (const auto& file : files_) {
      const int64_t here = file->size() / kRecord;
      if (record < here) return file->read(record * kRecord + offset, dst, bytes);
      record -= here;
    }
  }

 private:
  std::vector<std::unique_ptr<const InputFile>> files_;
  int64_t count_ = 0;
};

class Cifar10Images final : public Column {
 public:
  Cifar10Images(std::string name, std::shared_ptr<const Records> records)
      : spec_{std::move(name), Shape{32, 32, 3}, DType::uint8}, records_(std::move(records)) {}
  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return records_->count(); }
  bool in_memory() const override { return false; }

  void check() const override { records_->check(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    auto* out = static_cast<uint8_t*>(dst);
    std::vector<uint8_t> planes(3 * kPixels);
    for (const int64_t row : rows) {
      records_->read(row, 1, planes.data(), planes.size());
      for (int64_t pixel = 0; pixel < kPixels; ++pixel)
        for (int64_t channel = 0; channel < 3; ++channel)
          *out++ = planes[static_cast<size_t>(channel * kPixels + pixel)];
    }
  }

 private:
  TensorSpec spec_;
  std::shared_ptr<const Records> records_;
};

class Cifar10Labels final : public Column {
 public:
  Cifar10Labels(std::string name, std::shared_ptr<const Records> records)
      : spec_{std::move(name), Shape{}, DType::uint8}, records_(std::move(records)) {}
  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return records_->count(); }
  bool in_memory() const override { return false; }

  void check() const override { records_->check(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    auto* out = static_cast<uint8_t*>(dst);
    for (const int64_t row : rows) {
      records_->read(row, 0, out, 1);
      if (*out > 9)
        throw UserError(
            fmt::format("{}: expected a label from 0 to 9, found {} in record {}", spec_.name, *out, row));
      ++out;
    }
  }

 private:
  TensorSpec spec_;
  std::shared_ptr<const Records> records_;
};

class Cifar10Reader final : public Reader {
 public:
  explicit Cifar10Reader(const Cifar10Options& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    std::vector<std::string> paths;
    for (const std::string& name : options_.files) paths.push_back(request.find(name));
    return open_records(paths, request);
  }
  std::optional<SourceColumns> open_other(const std::string& path, FileFormat format, const TextOptions&,
                                          const ReadRequest& request) const override {
    if (format == FileFormat::picture || request.targets.empty()) return std::nullopt;
    return open_records({path}, request);
  }
  std::vector<std::string> files() const override { return options_.files; }

 private:
  static SourceColumns open_records(const std::vector<std::string>& paths, const ReadRequest& request) {
    if (request.inputs.size() != 1 || request.targets.size() > 1)
      request.fail(
          fmt::format("the reader cifar10 needs a model with one input and at most one target, but this "
                      "model has {} and {}",
                      format_plural(static_cast<int64_t>(request.inputs.size()), "input"),
                      format_plural(static_cast<int64_t>(request.targets.size()), "target")));
    const auto records = std::make_shared<const Records>(paths);
    const std::string name = fmt::format("{}", fmt::join(paths, ", "));
    Columns columns{std::make_shared<Cifar10Images>(name, records)};
    if (!request.targets.empty()) columns.push_back(std::make_shared<Cifar10Labels>(name, records));
    return columns;
  }

  Cifar10Options options_;
};

}  // namespace

void add_cifar10(Registry<Reader>& table) {
  const Check<std::vector<std::string>> some{"a list of at least one file",
                                             [](const auto& files) { return !files.empty(); },
                                             Json::object().set("minItems", 1)};
  Schema<Cifar10Options> schema("The binary version of CIFAR-10: images of 32x32x3 bytes and their classes.");
  schema.example("{files: [data_batch_1.bin, data_batch_2.bin]}");
  schema.required("files", &Cifar10Options::files, "paths of the .bin files, in order", some);
  table.add<Cifar10Reader>("cifar10", schema);
}

}  // namespace dtrain
