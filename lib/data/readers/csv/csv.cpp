// The csv reader: text files with one sample per line.
#include <fmt/format.h>

#include "data/dataset_spec.h"
#include "data/readers/csv/planner.h"
#include "data/readers/open_any.h"
#include "data/readers/text/samples.h"
#include "data/text/make_tokenizer.h"

namespace dtrain {

namespace {

class CsvReader final : public Reader {
 public:
  explicit CsvReader(const CsvOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    return open_path(request.find(options_.file), options_.format(), request);
  }
  std::vector<std::string> files() const override { return {options_.file}; }
  bool has_weights() const override { return options_.weight.has_value(); }
  bool has_labels() const override { return options_.labels.has_value(); }
  std::vector<std::optional<int64_t>> token_ids(const std::vector<TensorSpec>& inputs) const override {
    std::vector<std::optional<int64_t>> ids;
    for (const TensorSpec& input : inputs) {
      const std::string* key = text_of_input(options_, inputs, input);
      ids.push_back(key ? std::optional(options_.text.find(*key)->ids()) : std::nullopt);
    }
    return ids;
  }
  std::optional<CsvFormat> text_format() const override { return options_.format(); }

  std::string why_no_windows(const WindowsOptions& windows) const override {
    if (options_.weight) return "windows do not support the csv reader's option 'weight'; remove it";
    if (options_.id)
      return "windows do not support the csv reader's option 'id'; name the column in 'by' instead";
    if (options_.labels && options_.labels->column && windows.has_past_targets())
      return "the texts of the csv reader's 'labels' cannot be used as inputs; set 'past_targets: false'";
    return "";
  }

  std::optional<SourceColumns> open_other(const std::string& path, FileFormat file, const TextOptions& text,
                                          const ReadRequest& request) const override {
    // Early checkpoints do not store the positions of columns, so `width` is 0. If this function returns
    // nullopt, the caller reads all columns of the file.
    if (file != FileFormat::text || request.facts.fields.width == 0) return std::nullopt;
    if (is_plain_text(path, text, request)) return open_lines(path, request);
    CsvFormat as = options_.format();
    if (text.header) as.header = text.header;
    if (text.delimiter) as.delimiter = *text.delimiter;
    return open_path(path, as, request);
  }

 private:
  /// Returns true if each line of the file is one text. This is assumed if the name of the file ends in .txt,
  /// the file is for predictions of a model whose only input is text, and `text` has no header or delimiter.
  static bool is_plain_text(const std::string& path, const TextOptions& text, const ReadRequest& request) {
    return request.use == FileUse::prediction && path.ends_with(".txt") && !text.header && !text.delimiter &&
           request.inputs.size() == 1 && request.facts.tokens.size() == 1;
  }

  static SourceColumns open_lines(const std::string& path, const ReadRequest& request) {
    const auto tokenizer = make_tokenizer(request.facts.tokens.begin()->second);
    SourceColumns source(
        {column_of_tokens(samples_of_lines(path), *tokenizer, request.inputs[0].shape.elements())});
    source.facts = request.facts;
    return source;
  }

  SourceColumns open_path(const std::string& path, const CsvFormat& format,
                          const ReadRequest& request) const {
    CsvStart start;  // the planner keeps a reference to it
    std::optional<CsvPlanner> planner;
    CsvColumns columns = read_csv(path, format, [&](const CsvStart& found) {
      start = found;
      return planner.emplace(options_, request, start).plan();
    });
    SourceColumns source(std::move(columns.parts));
    source.weights = columns.weights;
    source.names = columns.names;
    for (const auto& key : {columns.series, columns.times})
      if (key) source.columns.push_back(key);
    source.facts = planner->facts(columns);
    if (start.has_row_names)
      source.warnings.push_back(
          fmt::format("{}: the header has one name fewer than the rows have values, so the first column is "
                      "used as row names",
                      path));
    if (columns.left_out > 0)
      source.warnings.push_back(
          fmt::format("{}: {} of {} rows have no target and are left out by `missing_target: skip`", path,
                      columns.left_out, columns.left_out + source.columns.front()->size()));
    return source;
  }

  CsvOptions options_;
};

}  // namespace

std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype, const CsvFormat& format,
                                       const std::vector<std::string>& columns) {
  const auto plan = [&](const CsvStart& start) {
    CsvPlan all;
    CsvPart input;
    input.dtype = dtype;
    if (start.names.empty() || columns.empty()) {
      for (size_t i = start.has_row_names ? 1 : 0; i < start.width(); ++i) input.fields.push_back({i, {}});
    } else {
      for (const size_t place : places_of_columns(path, columns, start.names))
        input.fields.push_back({place, {}});
    }
    all.parts.push_back(std::move(input));
    return all;
  };
  return read_csv(path, format, plan).parts.front();
}

void add_csv(Registry<Reader>& table) {
  table.add<CsvReader>("csv", csv_schema());
}

}  // namespace dtrain
