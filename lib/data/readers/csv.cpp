// Text files: one sample a line.
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "data/dataset_spec.h"
#include "data/readers/csv_options.h"
#include "data/readers/csv_table.h"
#include "data/readers/csv_values.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

DType csv_type(const TensorSpec& wanted) {
  return wanted.dtype == DType::int32 ? DType::int32 : DType::float32;
}

std::string name_of_target(const TensorSpec& target) {
  return target.name.empty() ? "target" : target.name;
}

/// Decides what is read of one file, by the options, what is known of the training file, and its first lines.
class CsvPlanner {
 public:
  CsvPlanner(const CsvOptions& options, const ReadRequest& request, const CsvStart& start)
      : options_(options), request_(request), known_(request.facts), start_(start) {}

  CsvPlan plan() {
    const std::vector<std::vector<size_t>> inputs = choose_inputs();
    const std::vector<size_t> targets = choose_targets();
    for (const CsvName& name : options_.categories)
      if (const auto place = find(name)) categories_.insert(*place);
    plan_.advice = "list the column in 'categories' where its values are names, or in 'drop' to leave it out";
    for (size_t i = 0; i < inputs.size(); ++i) add_input(request_.inputs[i], inputs[i]);
    for (size_t i = 0; i < targets.size(); ++i) add_target(request_.targets[i], targets[i]);
    if (options_.weight && !request_.targets.empty()) plan_.weight = place_of(*options_.weight);
    if (options_.id) plan_.id = find(*options_.id);
    return std::move(plan_);
  }

  /// What was known, completed by what was read.
  SourceFacts facts(const CsvColumns& columns) const {
    SourceFacts facts = known_;
    if (is_first()) facts.fields = fields_;
    for (const auto& [field, name] : table_names_) {
      auto& tables = name.first ? facts.class_names : facts.categories;
      tables.try_emplace(name.second, columns.categories.at(field));
    }
    for (const auto& [input, fills] : fills_) {
      auto& all = facts.fills[input];
      all.clear();
      for (const auto& [field, fill] : fills) {
        const auto table = columns.categories.find(field);
        all.insert(all.end(), table == columns.categories.end() ? 1 : table->second.size(),
                   table == columns.categories.end() ? fill : "");
      }
    }
    return facts;
  }

 private:
  size_t width() const { return start_.width(); }
  std::string called(size_t field) const {
    return start_.names.empty() ? std::to_string(field) : start_.names[field];
  }
  /// Whether this is the file that others are read by.
  bool is_first() const { return known_.fields == FieldNames(); }
  bool by_name() const { return !start_.names.empty() && !known_.fields.empty(); }

  size_t place_of(const CsvName& field) const {
    if (field.index) {
      const auto count = static_cast<int64_t>(width());
      const int64_t index = *field.index < 0 ? *field.index + count : *field.index;
      if (index < 0 || index >= count)
        throw UserError(fmt::format("{}: expected a column from {} to {}, found {}", start_.path, -count,
                                    count - 1, *field.index));
      return static_cast<size_t>(index);
    }
    if (start_.names.empty())
      throw UserError(fmt::format("{}: expected a column named '{}', found no header (set header: true)",
                                  start_.path, field.name));
    return place_of_column(start_.path, field.name, start_.names);
  }

  /// As place_of; nothing for what a file that is predicted from need not have.
  std::optional<size_t> find(const CsvName& field) const {
    if (!is_other_file()) return place_of(field);
    if (!field.index) {
      const auto found = std::find(start_.names.begin(), start_.names.end(), field.name);
      if (found == start_.names.end()) return std::nullopt;
      return static_cast<size_t>(found - start_.names.begin());
    }
    if (by_name() || width() != known_.fields.width) return std::nullopt;
    return place_of(field);
  }
  /// Whether it is predicted from: without targets, and perhaps with columns of its own.
  bool is_other_file() const { return request_.targets.empty() && known_.fields.width != 0; }

  /// Those of the only input, or of the one that `inputs` does not name.
  std::vector<size_t> all_others() const {
    std::set<size_t> taken;
    const auto take = [&](const CsvName& field) {
      if (const auto place = find(field)) taken.insert(*place);
    };
    if (options_.target) take(*options_.target);
    for (const auto& [name, field] : options_.targets) take(field);
    for (const auto* one : {&options_.id, &options_.weight})
      if (*one) take(**one);
    for (const CsvName& field : options_.drop) take(field);
    for (const auto& [name, fields] : options_.inputs)
      for (const CsvName& field : fields) take(field);
    std::vector<size_t> all;
    for (size_t i = 0; i < width(); ++i)
      if (!taken.contains(i)) all.push_back(i);
    if (all.empty())
      throw UserError(fmt::format("{}: expected columns besides the target, found none", start_.path));
    return all;
  }

  /// By the options alone.
  std::vector<std::vector<size_t>> own_inputs() const {
    for (const auto& [name, fields] : options_.inputs)
      if (std::none_of(request_.inputs.begin(), request_.inputs.end(),
                       [&, n = name](const TensorSpec& input) { return input.name == n; }))
        request_.fail("'inputs' names '" + name + "', which the model does not have");
    std::vector<std::vector<size_t>> all;
    const auto places = [&](const std::vector<CsvName>& fields) {
      std::vector<size_t> some;
      for (const CsvName& field : fields) some.push_back(place_of(field));
      return some;
    };
    size_t unnamed = 0;
    for (const TensorSpec& input : request_.inputs) {
      if (const CsvNames* named = options_.inputs.find(input.name)) {
        all.push_back(places(*named));
      } else if (++unnamed > 1) {
        request_.fail(fmt::format("nothing is read for the model's '{}'; give 'inputs: {{{}: [...]}}'",
                                  input.name, input.name));
      } else {
        all.push_back(options_.columns.empty() ? all_others() : places(options_.columns));
      }
    }
    return all;
  }

  /// How many fields each input has, of `total`.
  std::vector<size_t> counts_of_inputs(size_t total) const {
    std::vector<size_t> counts;
    size_t named = 0;
    for (const auto& [name, fields] : options_.inputs) named += fields.size();
    for (const TensorSpec& input : request_.inputs) {
      const CsvNames* fields = options_.inputs.find(input.name);
      counts.push_back(fields ? fields->size() : total - std::min(total, named));
    }
    return counts;
  }

  std::vector<std::vector<size_t>> cut(const std::vector<size_t>& places) const {
    std::vector<std::vector<size_t>> all;
    size_t at = 0;
    for (const size_t count : counts_of_inputs(places.size())) {
      all.emplace_back();
      for (size_t i = 0; i < count && at < places.size(); ++i) all.back().push_back(places[at++]);
    }
    return all;
  }

  std::vector<std::vector<size_t>> choose_inputs() {
    const FieldNames& fields = known_.fields;
    std::vector<size_t> places;
    if (by_name()) {
      for (const std::string& name : fields.inputs)
        places.push_back(place_of_column(start_.path, name, start_.names));
      return cut(places);
    }
    if (is_other_file()) {
      if (width() == fields.places.size()) {
        for (size_t i = 0; i < width(); ++i) places.push_back(i);
        return cut(places);
      }
      if (width() != fields.width)
        throw UserError(fmt::format("{}: expected {} values a line, or {} as in the training file, found {}",
                                    start_.path, fields.places.size(), fields.width, width()));
      return cut(fields.places);
    }
    auto inputs = own_inputs();
    fields_.width = width();
    for (const auto& of_input : inputs)
      for (const size_t place : of_input) {
        fields_.places.push_back(place);
        if (!start_.names.empty()) fields_.inputs.push_back(start_.names[place]);
      }
    return inputs;
  }

  std::vector<size_t> choose_targets() {
    std::vector<size_t> places;
    if (request_.targets.empty()) return places;
    const auto fields = Binding<CsvName>{options_.target, options_.targets}.resolve(
        request_.targets, "target", "targets", request_);
    for (size_t i = 0; i < fields.size(); ++i)
      places.push_back(by_name() && fields[i].index && i < known_.fields.targets.size()
                           ? place_of_column(start_.path, known_.fields.targets[i], start_.names)
                           : place_of(fields[i]));
    if (!start_.names.empty())
      for (const size_t place : places) fields_.targets.push_back(start_.names[place]);
    return places;
  }

  void add_table(size_t field, const std::string& name, bool is_class) {
    const auto& tables = is_class ? known_.class_names : known_.categories;
    const auto found = tables.find(name);
    CsvCategory category;
    if (found != tables.end()) category.values = found->second;
    category.other = !is_class && options_.unknown == CsvUnknown::other;
    plan_.categories.emplace(field, std::move(category));
    table_names_[field] = {is_class, name};
  }

  /// What the training file calls the i-th field of all inputs.
  std::string known_name(size_t field, size_t i) const {
    if (i < known_.fields.inputs.size()) return known_.fields.inputs[i];
    if (i < known_.fields.places.size() && start_.names.empty())
      return std::to_string(known_.fields.places[i]);
    return called(field);
  }

  void add_input(const TensorSpec& input, const std::vector<size_t>& places) {
    CsvPart part;
    part.dtype = csv_type(input);
    bool fitted = false;
    std::vector<std::pair<size_t, std::string>> fills;
    for (const size_t place : places) {
      const std::string name = known_name(place, inputs_done_++);
      CsvElement element{place, {}};
      if (is_category(place, name)) {
        add_table(place, name, false);
      } else if (options_.fill) {
        element.gap = gap_of(part.dtype);
        fitted = fitted || !options_.fill->number;
      }
      fills.emplace_back(place, options_.fill ? options_.fill->written : "");
      part.fields.push_back(element);
    }
    if (fitted) fills_[input.name] = std::move(fills);
    plan_.parts.push_back(std::move(part));
  }

  bool is_category(size_t place, const std::string& name) const {
    return categories_.contains(place) || known_.categories.contains(name);
  }

  /// A fill that is fitted is for later: until then NaN stands there.
  std::optional<float> gap_of(DType type) const {
    const auto& number = options_.fill->number;
    if (type == DType::float32)
      return number ? static_cast<float>(*number) : std::numeric_limits<float>::quiet_NaN();
    if (!number || *number != static_cast<double>(static_cast<int32_t>(*number))) return std::nullopt;
    return static_cast<float>(*number);
  }

  void add_target(const TensorSpec& target, size_t place) {
    const std::string name = name_of_target(target);
    const bool known = known_.class_names.contains(name);
    // Where the run knows its data, they are what they were.
    const bool is_text = is_first() && is_csv_name(start_.first[place]);
    if (known || is_text || categories_.contains(place)) add_table(place, name, true);
    plan_.parts.push_back({{{place, {}}}, csv_type(target), true});
  }

  const CsvOptions& options_;
  const ReadRequest& request_;
  const SourceFacts& known_;
  const CsvStart& start_;
  CsvPlan plan_;
  FieldNames fields_;                                           // as the options choose them here
  std::set<size_t> categories_;                                 // the fields that the options call so
  size_t inputs_done_ = 0;                                      // fields
  std::map<size_t, std::pair<bool, std::string>> table_names_;  // whether they are classes, and of what
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> fills_;
};

class CsvReader final : public Reader {
 public:
  explicit CsvReader(const CsvOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    return open_path(request.find(options_.file), format(), request);
  }
  std::vector<std::string> files() const override { return {options_.file}; }
  std::optional<CsvFormat> text_format() const override { return format(); }

  std::optional<SourceColumns> open_inputs(const std::string& path, FileFormat file, const TextOptions& text,
                                           const ReadRequest& request) const override {
    // What was saved before the places of columns were is read in full.
    if (file != FileFormat::text || request.facts.fields.width == 0) return std::nullopt;
    CsvFormat as = format();
    if (text.header) as.header = text.header;
    if (text.delimiter) as.delimiter = *text.delimiter;
    return open_path(path, as, request);
  }

 private:
  CsvFormat format() const { return {options_.delimiter[0], options_.header}; }

  SourceColumns open_path(const std::string& path, const CsvFormat& format,
                          const ReadRequest& request) const {
    CsvStart start;  // the planner refers to it
    std::optional<CsvPlanner> planner;
    CsvColumns columns = read_csv(path, format, [&](const CsvStart& found) {
      start = found;
      return planner.emplace(options_, request, start).plan();
    });
    SourceColumns source(std::move(columns.parts));
    source.weights = columns.weights;
    source.names = columns.names;
    source.facts = planner->facts(columns);
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
      for (size_t i = 0; i < start.width(); ++i) input.fields.push_back({i, {}});
    } else {
      for (const std::string& name : columns)
        input.fields.push_back({place_of_column(path, name, start.names), {}});
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
