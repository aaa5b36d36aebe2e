#include "print/prediction_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/files/new_file.h"
#include "base/formats/csv_cell.h"
#include "base/json.h"
#include "cli/console.h"
#include "data/readers/reader.h"
#include "data/stages/number_at.h"
#include "run/row_weights.h"

namespace dtrain {

namespace {

/// A file that replaces an existing file when the new file is complete.
class FileSink final : public TextSink {
 public:
  explicit FileSink(const std::string& path) : file_(path) {}
  void write(std::string_view text) override { file_.append(text.data(), text.size()); }
  void finish() override { file_.finish(); }

 private:
  NewFile file_;
};

/// Standard output. Ignores further text once the reader has closed the pipe.
class StandardOutputSink final : public TextSink {
 public:
  void write(std::string_view text) override { has_reader_ = has_reader_ && print_data(text); }

 private:
  bool has_reader_ = true;
};

/// The column titles of one output.
struct Titles {
  std::string label;                 // title of the class column; empty if the output has no class column
  std::string base;                  // title of a single field with all numbers
  std::vector<std::string> numbers;  // titles of the individual numbers
  bool is_array = false;             // the numbers are identified only by their index
};

/// Makes unique titles.
class TitleMaker {
 public:
  /// `taken`: the titles of other columns.
  explicit TitleMaker(std::set<std::string> taken) : taken_(std::move(taken)) {}

  /// Returns the titles of an output's columns. `output`: the output's name if the model has several outputs,
  /// else "". `with_classes`: the output has a column with the name of the predicted class.
  Titles of(const PredictedOutput& predicted, const std::string& output, bool with_classes) {
    const auto elements = static_cast<size_t>(predicted.spec.shape.elements());
    const std::vector<std::string>& targets = predicted.targets;
    const std::string& name = targets.size() == 1 ? targets.front() : output;
    Titles titles;
    titles.base = name.empty() ? "output" : name;
    const bool has_names = with_classes ? !predicted.classes.empty() : predicted.classes.size() == elements;
    if (with_classes && has_names) titles.label = unique(name.empty() ? "class" : name, "predicted");
    if (has_names || (elements > 1 && targets.size() == elements)) {
      titles.is_array = !has_names;
      for (const std::string& one : has_names ? predicted.classes : targets)
        titles.numbers.push_back(unique((output.empty() ? "" : output + ".") + one, titles.base));
    } else {
      titles.base = unique(titles.base, "predicted");
      titles.is_array = elements != 1;
      for (size_t i = 0; i < elements; ++i)
        titles.numbers.push_back(elements == 1 ? titles.base
                                               : unique(fmt::format("{}.{}", titles.base, i), ""));
    }
    return titles;
  }

 private:
  std::string unique(const std::string& title, const std::string& prefix) {
    std::string one = title;
    while (!taken_.insert(one).second) one = prefix + "." + one;
    return one;
  }

  std::set<std::string> taken_;
};

/// Writes predictions as a table: a line for each sample, or for each step of a forecast.
class PredictionTable final : public ArrayWriter {
 public:
  PredictionTable(std::unique_ptr<TextSink> sink, TextFormat format, std::vector<PredictedOutput> outputs,
                  bool with_classes, const Dataset& inputs)
      : sink_(std::move(sink)), format_(format), outputs_(std::move(outputs)), inputs_(inputs) {
    steps_ = steps_of_lines();
    if (steps_ > 0)
      for (PredictedOutput& output : outputs_) output.spec.shape = shape_of_step(output.spec.shape);
    std::set<std::string> taken{inputs.id_title()};
    if (steps_ > 0) taken.insert("step");
    TitleMaker maker(std::move(taken));
    for (const PredictedOutput& output : outputs_)
      titles_.push_back(maker.of(output, outputs_.size() > 1 ? output.spec.name : "", with_classes));
    if (format_ == TextFormat::csv) sink_->write(header());
  }

  void append(std::span<const View> arrays) override {
    fmt::memory_buffer text;
    const int64_t lines = std::max<int64_t>(1, steps_);  // number of lines for each sample
    for (int64_t row = 0; row < arrays[0].shape[0] * lines; ++row, ++line_) {
      begin_line(text, line_ / lines);
      if (steps_ > 0) write_field(text, "step", std::to_string(line_ % lines + 1));
      for (size_t i = 0; i < outputs_.size(); ++i) {
        const int64_t elements = outputs_[i].spec.shape.elements();
        std::vector<double> numbers;
        for (int64_t at = row * elements; at < (row + 1) * elements; ++at)
          numbers.push_back(number_at(arrays[i].data, arrays[i].dtype, at));
        write(text, outputs_[i], titles_[i], std::move(numbers));
      }
      text.append(std::string_view(format_ == TextFormat::csv ? "\n" : "}\n"));
    }
    sink_->write({text.data(), text.size()});
  }
  void finish() override { sink_->finish(); }

 private:
  std::string header() const {
    std::string line = csv_cell(inputs_.id_title());
    if (steps_ > 0) line += ",step";
    for (const Titles& titles : titles_) {
      if (!titles.label.empty()) line += "," + csv_cell(titles.label);
      for (const std::string& title : titles.numbers) line += "," + csv_cell(title);
    }
    return line + "\n";
  }

  /// Returns the number of steps if each step of a forecast has its own line, which requires CSV and outputs
  /// with one row for each step. Returns 0 if each sample has one line.
  int64_t steps_of_lines() const {
    const int64_t steps = inputs_.forecast_steps();
    const bool have_steps = std::all_of(outputs_.begin(), outputs_.end(), [&](const PredictedOutput& output) {
      const Shape& shape = output.spec.shape;
      return output.classes.empty() && shape.rank() > 0 && shape[0] == steps;
    });
    return format_ == TextFormat::csv && have_steps ? steps : 0;
  }
  static Shape shape_of_step(const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.begin() + 1, shape.end()));
  }

  void begin_line(fmt::memory_buffer& text, int64_t sample) const {
    const std::string id = inputs_.sample_id(sample);
    if (format_ == TextFormat::csv)
      fmt::format_to(std::back_inserter(text), "{}", csv_cell(id));
    else
      fmt::format_to(std::back_inserter(text), "{{{}: {}", Json(inputs_.id_title()).dump(),
                     inputs_.has_ids() ? Json(id).dump() : id);
  }

  /// Writes a comma and a field: the value in CSV, or the title and the value in JSON lines. Not used for the
  /// first field of a line.
  void write_field(fmt::memory_buffer& text, const std::string& title, const std::string& value) const {
    if (format_ == TextFormat::csv)
      fmt::format_to(std::back_inserter(text), ",{}", value);
    else
      fmt::format_to(std::back_inserter(text), ", {}: {}", Json(title).dump(), value);
  }

  /// Returns the shortest text that is parsed as the same float32, or as the same float64 if the number is
  /// not a float32. JSON has no NaN and no infinity, so numbers that are not finite are written as
  /// Json::dump() writes them.
  std::string text_of(double number) const {
    if (format_ == TextFormat::json_lines && !std::isfinite(number)) return Json(number).dump();
    const auto single = static_cast<float>(number);
    const bool is_single = static_cast<double>(single) == number || std::isnan(number);
    return is_single ? fmt::format("{}", single) : fmt::format("{}", number);
  }

  /// Returns the names of the classes whose score is above 0.5.
  static std::string labels_of(const PredictedOutput& output, const std::vector<double>& numbers) {
    std::string names;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] > 0.5) names += (names.empty() ? "" : ";") + output.classes[i];
    return names;
  }

  void write(fmt::memory_buffer& text, const PredictedOutput& output, const Titles& titles,
             std::vector<double> numbers) const {
    if (!titles.label.empty()) {
      if (output.is_binary()) numbers.insert(numbers.begin(), static_cast<float>(output.sum - numbers[0]));
      auto best = std::max_element(numbers.begin(), numbers.end()) - numbers.begin();
      if (output.threshold) best = numbers[1] > *output.threshold ? 1 : 0;
      const std::string name =
          output.has_labels ? labels_of(output, numbers) : output.classes[static_cast<size_t>(best)];
      write_field(text, titles.label, format_ == TextFormat::csv ? csv_cell(name) : Json(name).dump());
    }
    if (titles.is_array && format_ == TextFormat::json_lines) {
      std::string array;
      for (const double number : numbers) array += (array.empty() ? "" : ", ") + text_of(number);
      return write_field(text, titles.base, "[" + array + "]");
    }
    for (size_t i = 0; i < numbers.size(); ++i) write_field(text, titles.numbers[i], text_of(numbers[i]));
  }

  std::unique_ptr<TextSink> sink_;
  TextFormat format_;
  std::vector<PredictedOutput> outputs_;
  std::vector<Titles> titles_;  // titles of each output
  const Dataset& inputs_;
  int64_t steps_ = 0;  // lines for each sample, one per step of a forecast; 0 if a sample has one line
  int64_t line_ = 0;
};

}  // namespace

std::unique_ptr<TextSink> open_text_file(const std::string& path) {
  return std::make_unique<FileSink>(path);
}

std::unique_ptr<TextSink> open_standard_output() {
  return std::make_unique<StandardOutputSink>();
}

PredictedOutput predicted_output(const RunConfig& config, size_t index) {
  const Head& head = config.heads[index];
  PredictedOutput output{config.graph.spec(head.output), target_columns(config, index)};
  output.spec.name = config.graph.layer_name(head.output.node);
  const Shape& shape = output.spec.shape;
  const auto bounds = head.loss ? head.loss->target_bounds(output.spec) : std::nullopt;
  // The sum is 0 for hinge losses, whose targets are -1 and 1.
  if (bounds && std::isfinite(bounds->most)) output.sum = bounds->least + bounds->most;
  if (shape.rank() != 1) return output;
  output.has_labels = config.dataset.train && config.dataset.train->reader->has_labels();
  output.classes = class_names(config, config.dataset.facts, index);
  const bool by_number =
      head.target.dtype == DType::int32 || (head.loss && head.loss->tells_classes() && shape.elements() == 1);
  if (output.classes.empty() && by_number)
    for (int64_t i = 0; i < std::max<int64_t>(shape.elements(), 2); ++i)
      output.classes.push_back(std::to_string(i));
  // The class names are dropped if there is not one name for each column of the output.
  if (static_cast<int64_t>(output.classes.size()) != shape.elements() && !output.is_binary())
    output.classes.clear();
  return output;
}

std::unique_ptr<ArrayWriter> open_prediction_table(std::unique_ptr<TextSink> sink, TextFormat format,
                                                   std::vector<PredictedOutput> outputs, bool with_classes,
                                                   const Dataset& inputs) {
  return std::make_unique<PredictionTable>(std::move(sink), format, std::move(outputs), with_classes, inputs);
}

}  // namespace dtrain
