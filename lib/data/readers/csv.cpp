// Text files of numbers: one sample a line.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "config/scalar.h"
#include "data/readers/binding.h"
#include "data/readers/csv_table.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

/// A field of the lines: by its name in the header, or by its index, which counts from the end where it is
/// negative.
struct CsvField {
  std::optional<int64_t> index;
  std::string name;
};

}  // namespace

template <>
struct Codec<CsvField> {
  static bool parse(const Node& node, const std::string& where, CsvField& out, Diagnostics& diagnostics) {
    if (!node.is_scalar()) return report_unexpected(node, where, "a column's name or index", diagnostics);
    int64_t index = 0;
    out = {};
    if (!node.quoted() && parse_number(node.text(), index) == std::errc())
      out.index = index;
    else
      out.name = node.text();
    return true;
  }
  static Node write(const CsvField& field) {
    return field.index ? Codec<int64_t>::write(*field.index) : Codec<std::string>::write(field.name);
  }
  static Json schema() {
    Json choices = Json::array();
    choices.push(json_type("integer")).push(json_type("string"));
    return Json::object().set("anyOf", std::move(choices));
  }
};

namespace {

struct CsvOptions {
  std::string file;
  std::optional<CsvField> target;
  Named<CsvField> targets;
  bool header = false;
  std::string delimiter = ",";
};

class CsvReader final : public Reader {
 public:
  explicit CsvReader(const CsvOptions& options) : options_(options) {}

  Columns open(const ReadRequest& request) const override {
    if (request.inputs.size() != 1)
      request.fail(fmt::format("csv feeds a model of one input; this one has {}", request.inputs.size()));
    const std::string path = request.find(options_.file);
    const auto choose = [&](size_t width, const std::vector<std::string>& names) {
      return parts(request, path, width, names);
    };
    return read_csv(path, {options_.delimiter[0], options_.header}, choose);
  }
  std::vector<std::string> files() const override { return {options_.file}; }

 private:
  static size_t index_of(const CsvField& field, const std::string& path, size_t width,
                         const std::vector<std::string>& names) {
    if (field.index) {
      const auto count = static_cast<int64_t>(width);
      const int64_t index = *field.index < 0 ? *field.index + count : *field.index;
      if (index < 0 || index >= count)
        throw UserError(fmt::format("{}: expected a target column from {} to {}, found {}", path, -count,
                                    count - 1, *field.index));
      return static_cast<size_t>(index);
    }
    const auto found = std::find(names.begin(), names.end(), field.name);
    if (found == names.end())
      throw UserError(fmt::format("{}: expected a column named '{}', found {}", path, field.name,
                                  names.empty() ? "no header (set header: true)"
                                                : fmt::format("the columns {}", fmt::join(names, ", "))));
    return static_cast<size_t>(found - names.begin());
  }

  /// The model's input is all columns that are no targets, whether the request wants those or not.
  std::vector<CsvPart> parts(const ReadRequest& request, const std::string& path, size_t width,
                             const std::vector<std::string>& names) const {
    std::vector<size_t> taken;
    if (options_.target) taken.push_back(index_of(*options_.target, path, width, names));
    for (const auto& [name, field] : options_.targets) taken.push_back(index_of(field, path, width, names));
    CsvPart input;
    input.dtype = request.inputs[0].dtype == DType::int32 ? DType::int32 : DType::float32;
    for (size_t i = 0; i < width; ++i)
      if (std::find(taken.begin(), taken.end(), i) == taken.end()) input.fields.push_back(i);
    if (input.fields.empty())
      throw UserError(fmt::format("{}: expected columns besides the target, found none", path));
    std::vector<CsvPart> all{std::move(input)};
    if (request.targets.empty()) return all;
    const auto fields = Binding<CsvField>{options_.target, options_.targets}.resolve(
        request.targets, "target", "targets", request);
    for (size_t i = 0; i < fields.size(); ++i) {
      const DType dtype = request.targets[i].dtype == DType::int32 ? DType::int32 : DType::float32;
      all.push_back({{index_of(fields[i], path, width, names)}, dtype, true});
    }
    return all;
  }

  CsvOptions options_;
};

}  // namespace

std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype) {
  const auto choose = [&](size_t width, const std::vector<std::string>&) {
    CsvPart all;
    all.dtype = dtype;
    for (size_t i = 0; i < width; ++i) all.fields.push_back(i);
    return std::vector<CsvPart>{all};
  };
  return read_csv(path, {',', std::nullopt}, choose).front();
}

void add_csv(KindTable<Reader>& table) {
  const Check<std::string> one_character{"one character",
                                         [](const std::string& text) { return text.size() == 1; },
                                         Json::object().set("minLength", 1).set("maxLength", 1)};
  Schema<CsvOptions> schema("Text (.gz or plain), a sample a line: numbers between delimiters.");
  schema.required("file", &CsvOptions::file, "the file")
      .optional("target", &CsvOptions::target,
                "the column of the only target: its name in the header, or its index, negative from the end")
      .optional("targets", &CsvOptions::targets, "the column of each target, by output name")
      .optional("header", &CsvOptions::header, "the first line holds the columns' names")
      .optional("delimiter", &CsvOptions::delimiter, "what stands between the numbers", one_character)
      .rule([](const CsvOptions& options, const Node& node, Diagnostics& diagnostics) {
        if (options.target && !options.targets.empty())
          diagnostics.error(node, "give either 'target' (one) or 'targets' (several, by name), not both");
      });
  table.add<CsvReader>("csv", schema);
}

}  // namespace dtrain
