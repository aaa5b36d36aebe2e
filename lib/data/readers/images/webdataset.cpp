// The webdataset reader: images in tar archives as WebDataset writes them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/name_list.h"
#include "data/pictures/class_numbers.h"
#include "data/pictures/open_pictures.h"
#include "data/pictures/tar_pictures.h"
#include "data/readers/csv/values.h"
#include "data/readers/file_pattern.h"
#include "data/readers/images/picture_fields.h"

namespace dtrain {

namespace {

struct WebDatasetOptions : PictureOptions {
  std::string files;
  std::string target = "cls";
  std::vector<std::string> class_names;
};

/// Converts texts to numbers, or to indices into a table of names.
class TextTargets {
 public:
  /// `names` is the table of class names if it is already known. In this case, the texts may be names in the
  /// table or indices into it, but not both. If `names` is empty and the first text is a name, the table is
  /// made of all texts. If `names` is empty and the first text is a number, all texts must be numbers.
  TextTargets(const TarSamples& samples, const std::vector<std::string>& names)
      : samples_(samples), names_(names) {
    if (names_.empty() && is_csv_name(samples.targets.front())) {
      const std::set<std::string> sorted(samples.targets.begin(), samples.targets.end());
      names_.assign(sorted.begin(), sorted.end());
    }
    texts_ = label_texts(names_, samples.targets.front());
    for (size_t i = 0; i < texts_.size(); ++i) numbers_.emplace(texts_[i], static_cast<int32_t>(i));
  }

  const std::vector<std::string>& names() const { return names_; }

  std::shared_ptr<const Column> column(const std::string& name, DType type) const {
    const bool is_whole = type == DType::int32;
    const size_t count = samples_.targets.size();
    const auto data = allocate_bytes(count * 4);  // int32 and float32 have four bytes
    for (size_t i = 0; i < count; ++i) {
      const double value = names_.empty() ? number_of(i, is_whole) : index_of(i);
      const auto whole = static_cast<int32_t>(is_whole ? value : 0);
      const auto real = static_cast<float>(value);
      std::memcpy(data.get() + 4 * i, is_whole ? static_cast<const void*>(&whole) : &real, 4);
    }
    return std::make_shared<MemoryColumn>(TensorSpec{name, Shape{}, is_whole ? DType::int32 : DType::float32},
                                          samples_.pictures->size(), data);
  }

 private:
  [[noreturn]] void refuse(size_t i, const std::string& expected) const {
    throw UserError(fmt::format("{}: expected {} as its target, found '{}'",
                                samples_.pictures->name(static_cast<int64_t>(i)), expected,
                                samples_.targets[i].substr(0, 40)));
  }
  double number_of(size_t i, bool is_whole) const {
    using Limits = std::numeric_limits<int32_t>;
    const auto value = csv_number(samples_.targets[i]);
    if (!value || !std::isfinite(static_cast<float>(*value)) ||
        (is_whole && (*value != std::floor(*value) || *value < Limits::min() || *value > Limits::max())))
      refuse(i, is_whole ? "an integer (int32)" : "a finite number");
    return *value;
  }
  double index_of(size_t i) const {
    const auto found = numbers_.find(samples_.targets[i]);
    if (found == numbers_.end()) refuse(i, fmt::format("one of the classes {}", list_some(texts_, 20)));
    return found->second;
  }

  const TarSamples& samples_;
  std::vector<std::string> names_;
  std::vector<std::string> texts_;  // the text of each class in the targets: its name or its index
  std::unordered_map<std::string, int32_t> numbers_;
};

class WebDatasetReader final : public Reader {
 public:
  explicit WebDatasetReader(const WebDatasetOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    return open_archives(paths(request), options_.files, request);
  }
  std::vector<std::string> files() const override { return {options_.files}; }
  std::vector<std::string> paths(const ReadRequest& request) const override {
    return find_files(options_.files, request);
  }
  std::optional<SourceColumns> open_other(const std::string& path, FileFormat format, const TextOptions&,
                                          const ReadRequest& request) const override {
    if (format != FileFormat::tar || request.targets.empty()) return std::nullopt;
    return open_archives({path}, path, request);
  }
  std::optional<PictureOptions> picture_options() const override { return options_; }

 private:
  /// Opens the archives at `paths`. `name` is the name that messages use for all archives together.
  SourceColumns open_archives(const std::vector<std::string>& paths, const std::string& name,
                              const ReadRequest& request) const {
    check_one_picture(request);
    if (request.targets.size() > 1)
      request.fail(fmt::format(
          "the reader webdataset needs a model with at most one target, but this model has {} targets",
          request.targets.size()));
    const TarSamples samples = list_tar_samples(paths, request.targets.empty() ? "" : options_.target);
    PictureSet set{name, samples.pictures, {}, true};
    set.known.facts = request.facts;
    if (!request.targets.empty()) {
      auto& names = set.known.facts.class_names;
      if (!options_.class_names.empty()) names.try_emplace("target", options_.class_names);
      const TextTargets targets(samples, names["target"]);
      set.known.columns.push_back(targets.column(name, request.targets[0].dtype));
      names["target"] = targets.names();
      if (targets.names().empty()) names.erase("target");
    }
    return open_pictures(std::move(set), options_, request.inputs[0]);
  }

  WebDatasetOptions options_;
};

}  // namespace

void add_webdataset(Registry<Reader>& table) {
  Schema<WebDatasetOptions> schema(
      "Uncompressed tar archives (shards) in the format of WebDataset. A sample consists of consecutive "
      "files with the same name up to the first dot, such as 17.jpg and 17.cls. Samples can be read in any "
      "order. Images are decoded and resized as in the reader `images`.");
  schema.example("{files: \"shards/train-{000000..000146}.tar\", size: [224, 224], resize: crop}");
  schema
      .required("files", &WebDatasetOptions::files,
                "paths of the archives, in order. {000..146} and {a,b} expand to all names; *, ? and [...] "
                "expand to the existing files that match")
      .optional("target", &WebDatasetOptions::target,
                "the extension of the files that contain the targets. Each file contains a class index, a "
                "class name or a number");
  add_picture_fields(schema);
  table.add<WebDatasetReader>("webdataset", schema);
}

}  // namespace dtrain
