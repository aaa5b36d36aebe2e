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
  static bool parse(const ConfigNode& node, const std::string& where, CsvField& out,
                    Diagnostics& diagnostics) {
    if (!node.is_scalar()) return report_unexpected(node, where, "a column's name or index", diagnostics);
    int64_t index = 0;
    out = {};
    if (!node.quoted() && parse_number(node.text(), index) == std::errc())
      out.index = index;
    else
      out.name = node.text();
    return true;
  }
  static ConfigNode write(const CsvField& field) {
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

DType csv_type(const TensorSpec& wanted) {
  return wanted.dtype == DType::int32 ? DType::int32 : DType::float32;
}

class CsvReader final : public Reader {
 public:
  explicit CsvReader(const CsvOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    const std::string path = find(request);
    const auto choose = [&](size_t width, const std::vector<std::string>& names) {
      const Choice choice = choice_of(request, path, width, names);
      CsvPart input;
      input.dtype = csv_type(request.inputs[0]);
      input.fields = choice.inputs;
      std::vector<CsvPart> all{std::move(input)};
      for (size_t i = 0; i < choice.targets.size(); ++i)
        all.push_back({{choice.targets[i]}, csv_type(request.targets[i]), true});
      return all;
    };
    SourceColumns source = read_csv(path, format(), choose);
    source.facts = request.facts;
    if (source.facts.fields.empty()) source.facts.fields = fields(request);
    return source;
  }
  std::vector<std::string> files() const override { return {options_.file}; }
  std::optional<CsvFormat> text_format() const override { return format(); }

 private:
  /// The columns that the options choose, where they have names.
  FieldNames fields(const ReadRequest& request) const {
    if (!options_.header) return {};
    const std::string path = find(request);
    const std::vector<std::string> names = read_csv_names(path, format());
    if (names.empty()) return {};
    const Choice choice = own_choice(request, path, names.size(), names);
    FieldNames fields;
    for (const size_t index : choice.inputs) fields.inputs.push_back(names[index]);
    for (const size_t index : choice.targets) fields.targets.push_back(names[index]);
    return fields;
  }

  /// Places in a line.
  struct Choice {
    std::vector<size_t> inputs, targets;
  };

  CsvFormat format() const { return {options_.delimiter[0], options_.header}; }

  std::string find(const ReadRequest& request) const {
    if (request.inputs.size() != 1)
      request.fail(fmt::format("csv feeds a model of one input; this one has {}", request.inputs.size()));
    return request.find(options_.file);
  }

  static size_t place_of(const CsvField& field, const std::string& path, size_t width,
                         const std::vector<std::string>& names) {
    if (field.index) {
      const auto count = static_cast<int64_t>(width);
      const int64_t index = *field.index < 0 ? *field.index + count : *field.index;
      if (index < 0 || index >= count)
        throw UserError(fmt::format("{}: expected a target column from {} to {}, found {}", path, -count,
                                    count - 1, *field.index));
      return static_cast<size_t>(index);
    }
    if (names.empty())
      throw UserError(fmt::format("{}: expected a column named '{}', found no header (set header: true)",
                                  path, field.name));
    return place_of_column(path, field.name, names);
  }

  std::vector<CsvField> wanted_targets(const ReadRequest& request) const {
    if (request.targets.empty()) return {};
    return Binding<CsvField>{options_.target, options_.targets}.resolve(request.targets, "target", "targets",
                                                                        request);
  }

  /// What the options say. The model's input is all columns that are no targets, whether the request wants
  /// those or not.
  Choice own_choice(const ReadRequest& request, const std::string& path, size_t width,
                    const std::vector<std::string>& names) const {
    std::vector<size_t> taken;
    if (options_.target) taken.push_back(place_of(*options_.target, path, width, names));
    for (const auto& [name, field] : options_.targets) taken.push_back(place_of(field, path, width, names));
    Choice choice;
    for (size_t i = 0; i < width; ++i)
      if (std::find(taken.begin(), taken.end(), i) == taken.end()) choice.inputs.push_back(i);
    if (choice.inputs.empty())
      throw UserError(fmt::format("{}: expected columns besides the target, found none", path));
    for (const CsvField& field : wanted_targets(request))
      choice.targets.push_back(place_of(field, path, width, names));
    return choice;
  }

  /// Where the file has a header, and the one that was trained on had one, the names in that one: for a
  /// target, too, unless the options name its column here.
  Choice choice_of(const ReadRequest& request, const std::string& path, size_t width,
                   const std::vector<std::string>& names) const {
    const FieldNames& known = request.facts.fields;
    if (names.empty() || known.empty()) return own_choice(request, path, width, names);
    Choice choice;
    for (const std::string& name : known.inputs) choice.inputs.push_back(place_of_column(path, name, names));
    const std::vector<CsvField> targets = wanted_targets(request);
    for (size_t i = 0; i < targets.size(); ++i)
      choice.targets.push_back(targets[i].index && i < known.targets.size()
                                   ? place_of_column(path, known.targets[i], names)
                                   : place_of(targets[i], path, width, names));
    return choice;
  }

  CsvOptions options_;
};

}  // namespace

std::shared_ptr<const Column> open_csv(const std::string& path, DType dtype, const CsvFormat& format,
                                       const std::vector<std::string>& columns) {
  const auto choose = [&](size_t width, const std::vector<std::string>& names) {
    CsvPart input;
    input.dtype = dtype;
    if (names.empty() || columns.empty()) {
      for (size_t i = 0; i < width; ++i) input.fields.push_back(i);
    } else {
      for (const std::string& name : columns) input.fields.push_back(place_of_column(path, name, names));
    }
    return std::vector<CsvPart>{input};
  };
  return read_csv(path, format, choose).front();
}

void add_csv(Registry<Reader>& table) {
  const Check<std::string> one_character{"one character",
                                         [](const std::string& text) { return text.size() == 1; },
                                         Json::object().set("minLength", 1).set("maxLength", 1)};
  Schema<CsvOptions> schema("Text (.gz or plain), a sample a line: numbers between delimiters.");
  schema.example("{file: train.csv, header: true, target: class}");
  schema.required("file", &CsvOptions::file, "the file")
      .optional("target", &CsvOptions::target,
                "the column of the only target: its name in the header, or its index, negative from the end")
      .optional("targets", &CsvOptions::targets, "the column of each target, by output name")
      .optional("header", &CsvOptions::header,
                "the first line holds the columns' names; validation, test and predicted files that have "
                "them, too, "
                "are read by them, whatever their order")
      .optional("delimiter", &CsvOptions::delimiter, "what stands between the numbers", one_character)
      .rule([](const CsvOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.target && !options.targets.empty())
          diagnostics.error(node, "give either 'target' (one) or 'targets' (several, by name), not both");
      });
  table.add<CsvReader>("csv", schema);
}

}  // namespace dtrain
