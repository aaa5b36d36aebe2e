#include "prediction_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/new_file.h"
#include "train/row_weights.h"

namespace dtrain {

namespace {

/// As RFC 4180 wants it.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? "\"\"" : std::string(1, c);
  return all + "\"";
}

/// How one output is shown.
struct OutputNames {
  std::string target;                // its name, "" where it has none
  std::vector<std::string> classes;  // empty: numbers
  Scores scores = Scores::any;
  int64_t elements = 1;
  double border = 0.5;  // of two classes' one score
  bool is_binary() const { return classes.size() == 2 && elements == 1; }
};

OutputNames names_of_output(const RunConfig& config, size_t index, const TensorSpec& output) {
  const SourceFacts& facts = config.dataset.facts.source;
  const Head& head = config.heads[index];
  OutputNames names{target_column(config, index), {}, head.loss->takes(), output.shape.elements()};
  if (const auto bounds = head.loss->target_bounds(output); bounds && std::isfinite(bounds->most))
    names.border = (bounds->least + bounds->most) / 2;  // 0 of hinge
  const auto found = facts.class_names.find(name_for_of(head.target));
  const bool rank_one = output.shape.rank() == 1;
  if (found != facts.class_names.end()) names.classes = found->second;
  if (found == facts.class_names.end() && rank_one && head.target.dtype == DType::int32)
    for (int64_t i = 0; i < names.elements; ++i) names.classes.push_back(std::to_string(i));
  // A network may have more or fewer outputs than there are classes.
  const auto count = static_cast<int64_t>(names.classes.size());
  if (!rank_one || (count != names.elements && !names.is_binary())) names.classes.clear();
  return names;
}

double sigmoid(float logit) {
  return 1 / (1 + std::exp(-static_cast<double>(logit)));
}

/// The probability of each class, or its score where a loss asks for no probabilities: the greatest is of the
/// class that the model says.
std::vector<float> class_scores(const OutputNames& names, const float* scores) {
  const bool logits = names.scores == Scores::sigmoid_logits || names.scores == Scores::softmax_logits;
  if (names.is_binary()) {
    const double second = logits ? sigmoid(*scores) : static_cast<double>(*scores);
    return {static_cast<float>(2 * names.border - second), static_cast<float>(second)};
  }
  std::vector<float> all(scores, scores + names.elements);
  if (names.scores == Scores::sigmoid_logits)
    for (float& score : all) score = static_cast<float>(sigmoid(score));
  if (names.scores != Scores::softmax_logits) return all;
  const auto most = static_cast<double>(*std::max_element(all.begin(), all.end()));
  double sum = 0;
  for (const float score : all) sum += std::exp(static_cast<double>(score) - most);
  for (float& score : all) score = static_cast<float>(std::exp(static_cast<double>(score) - most) / sum);
  return all;
}

class PredictionTable final : public ArrayWriter {
 public:
  PredictionTable(const std::string& path, const RunConfig& config, const std::vector<TensorSpec>& outputs,
                  const Dataset& inputs)
      : file_(path), inputs_(inputs) {
    std::string header = quoted(inputs.id_title());
    for (size_t i = 0; i < outputs.size(); ++i) {
      names_.push_back(names_of_output(config, i, outputs[i]));
      header += titles(names_.back(), outputs.size() > 1 ? outputs[i].name : "");
    }
    header += "\n";
    file_.append(header.data(), header.size());
  }

  void append(std::span<const View> arrays) override {
    fmt::memory_buffer text;
    for (int64_t row = 0; row < arrays[0].shape[0]; ++row) {
      fmt::format_to(std::back_inserter(text), "{}", quoted(inputs_.sample_id(row_++)));
      for (size_t i = 0; i < names_.size(); ++i)
        write(text, names_[i], arrays[i].f32() + row * names_[i].elements);
      text.push_back('\n');
    }
    file_.append(text.data(), text.size());
  }
  void finish() override { file_.finish(); }

 private:
  static std::string titles(const OutputNames& names, const std::string& output) {
    const std::string one = !names.target.empty() ? names.target : !output.empty() ? output : "";
    const std::string prefix = output.empty() ? "" : output + ".";
    std::string all;
    if (!names.classes.empty()) {
      all = "," + quoted(one.empty() ? "class" : one);
      for (const std::string& name : names.classes) all += "," + quoted(prefix + name);
      return all;
    }
    const std::string base = one.empty() ? "output" : one;
    if (names.elements == 1) return "," + quoted(base);
    for (int64_t i = 0; i < names.elements; ++i) all += "," + quoted(fmt::format("{}.{}", base, i));
    return all;
  }

  static void write(fmt::memory_buffer& text, const OutputNames& names, const float* values) {
    std::vector<float> numbers(values, values + names.elements);
    if (!names.classes.empty()) {
      numbers = class_scores(names, values);
      const auto best = std::max_element(numbers.begin(), numbers.end()) - numbers.begin();
      fmt::format_to(std::back_inserter(text), ",{}", quoted(names.classes[static_cast<size_t>(best)]));
    }
    // Each number as short as it can be and still be read back to the same float32.
    for (const float number : numbers) fmt::format_to(std::back_inserter(text), ",{}", number);
  }

  NewFile file_;
  const Dataset& inputs_;
  std::vector<OutputNames> names_;
  int64_t row_ = 0;
};

}  // namespace

bool has_named_predictions(const RunConfig& config, const Dataset& inputs) {
  const SourceFacts& facts = config.dataset.facts.source;
  return !facts.fields.targets.empty() || !facts.class_names.empty() || inputs.has_ids();
}

std::unique_ptr<ArrayWriter> open_prediction_table(const std::string& path, const RunConfig& config,
                                                   const std::vector<TensorSpec>& outputs,
                                                   const Dataset& inputs) {
  return std::make_unique<PredictionTable>(path, config, outputs, inputs);
}

}  // namespace dtrain
