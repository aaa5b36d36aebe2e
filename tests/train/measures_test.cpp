// Tests losses and metrics of a whole split. They must equal the values of scikit-learn, with and without
// weights, however the split is divided into batches and among replicas. The expected numbers were computed
// with scikit-learn 1.9.1 from the same samples. tests/measures/against_peers.py computes them again.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "run/row_weights.h"
#include "support/runs.h"
#include "train/evaluation/evaluation.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr int64_t kRows = 211, kClasses = 4;

/// A sample has scores, a class, a binary label, a number and a weight. All values are rounded to six
/// decimals, as in a text file.
struct Sample {
  float scores[kClasses];
  int32_t number;
  float yes, amount, weight;
};

std::vector<Sample> make_samples() {
  uint64_t state = 12345;
  const auto draw = [&] {
    state = (state * 1103515245 + 12345) % 2147483648;
    return static_cast<double>(state) / 2147483648;
  };
  const auto rounded = [](double value) { return std::stod(fmt::format("{:.6f}", value)); };
  std::vector<Sample> samples;
  for (int64_t i = 0; i < kRows; ++i) {
    Sample sample{};
    double scores[kClasses];
    for (double& score : scores) score = rounded(6 * draw() - 3);
    std::transform(scores, scores + kClasses, sample.scores, [](double s) { return static_cast<float>(s); });
    const auto best = std::max_element(scores, scores + kClasses) - scores;
    const double pick = draw();
    const auto other = static_cast<int32_t>(draw() * kClasses);
    sample.number = pick < 0.55 ? static_cast<int32_t>(best) : other;
    sample.weight = static_cast<float>(rounded(2 * draw()));
    sample.yes = scores[0] + 4 * draw() - 2 > 0.5 ? 1 : 0;
    sample.amount = static_cast<float>(rounded(scores[1] + 2 * draw() - 1));
    samples.push_back(sample);
  }
  return samples;
}

/// The samples: scores, the three targets and, if `weighted`, the weights.
class Table final : public Dataset {
 public:
  explicit Table(bool weighted) {
    columns_ = {{"x", {kClasses}}, {"classes", {}, DType::int32}, {"yes", {1}}, {"amount", {1}}};
    if (weighted) columns_.push_back({"weight", {}});
  }
  int64_t size() const override { return kRows; }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& wanted, std::span<const View> dst) const override {
    REQUIRE(dst.size() == columns_.size());
    for (size_t i = 0; i < dst.size(); ++i) read_column(i, wanted, dst[i].data);
  }
  void read_column(size_t index, const Samples& wanted, void* dst) const override {
    auto* floats = static_cast<float*>(dst);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Sample& sample = samples_[static_cast<size_t>(wanted.rows[i])];
      if (index == 0) std::copy_n(sample.scores, kClasses, floats + kClasses * static_cast<int64_t>(i));
      if (index == 1) static_cast<int32_t*>(dst)[i] = sample.number;
      if (index == 2) floats[i] = sample.yes;
      if (index == 3) floats[i] = sample.amount;
      if (index == 4) floats[i] = sample.weight;
    }
  }
  bool in_memory() const override { return true; }

 private:
  std::vector<TensorSpec> columns_;
  std::vector<Sample> samples_ = make_samples();
};

/// A model whose outputs are the scores, the first score and the second score.
constexpr auto kModel = R"(
model:
  inputs: {{x: [4]}}
  layers:
    - dense: {{name: classes, units: 4, use_bias: false, inputs: x}}
    - dense: {{name: yes, units: 1, use_bias: false, inputs: x}}
    - dense: {{name: amount, units: 1, use_bias: false, inputs: x}}
  outputs: [classes, yes, amount]
dataset: {{train: {{synthetic: {{samples: 8, targets: {{classes: {{classes: 4}}, yes: {{shape: [1]}}, amount: {{shape: [1]}}}}}}}}}}
strategy: {{mirrored: {{devices: [cpu:0, cpu:1], replicas: {replicas}}}}}
train:
  batch_size: {batch}
  loss:
    classes: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
    yes: {{binary_crossentropy: {{from_logits: true, weight: 0.5}}}}
    amount: {{mean_squared_error: {{weight: 0}}}}
  optimizer: sgd
  {metrics}:
    classes:
      - sparse_categorical_accuracy
      - {{f1_score: {{average: macro}}}}
      - {{f1_score: {{average: micro, name: f1_micro}}}}
      - {{f1_score: {{average: weighted, name: f1_weighted}}}}
      - {{f1_score: {{name: f1_each}}}}
      - dice
      - {{dice: {{name: dice_each, average: none, include_background: false}}}}
      - {{precision: {{average: macro}}}}
      - {{recall: {{average: macro}}}}
      - {{precision: {{average: none, name: precision_each}}}}
      - confusion_matrix
      - mean_iou
      - cohen_kappa
      - {{cohen_kappa: {{weightage: linear, name: linear_kappa}}}}
      - {{cohen_kappa: {{weightage: quadratic, name: quadratic_kappa}}}}
      - matthews_correlation
      - perplexity
      - {{precision_at_recall: {{recall: 0.9, class_id: 2}}}}
      - auc
      - {{auc: {{curve: PR, name: auc_pr}}}}
    yes: [f1_score, precision, recall, auc, {{auc: {{curve: PR, name: auc_pr}}}}, precision_at_recall: 0.5]
    amount: [r2_score, root_mean_squared_error, mean_absolute_error, mean_absolute_percentage_error]
)";

RunConfig config_of(int replicas, int64_t batch, bool weighted) {
  RunConfig config = config_from(fmt::format(kModel, fmt::arg("replicas", replicas), fmt::arg("batch", batch),
                                             fmt::arg("metrics", weighted ? "weighted_metrics" : "metrics")));
  // The heads get weights here, as if a reader provided the weights.
  if (weighted)
    for (Head& head : config.heads) head.weights = TensorSpec{"weights", {}, DType::float32};
  return config;
}

/// Evaluates the run on the table, and returns the results.
Json measure(const RunConfig& config, bool weighted) {
  const RunPlan plan = plan_run(config, single_process());
  Engine engine(plan);
  engine.allocate(Plan::Purpose::evaluation, config.train.batch_size);
  for (const ParameterSlice& slice : engine.layout().slices()) {
    std::vector<float> kernel(static_cast<size_t>(slice.elements()), 0.0f);
    if (slice.layer == "classes")
      for (size_t c = 0; c < kClasses; ++c) kernel[c * kClasses + c] = 1;
    else
      kernel[slice.layer == "yes" ? 0 : 1] = 1;
    engine.state().write(kParameters, {slice.offset, slice.offset + slice.elements()}, kernel.data());
  }
  engine.state().finish_writing();
  Loader loader(with_weights(std::make_shared<Table>(weighted), config, nullptr),
                {.batch_size = config.train.batch_size});
  const auto measures = evaluate_split(config, engine, loader, nullptr);
  REQUIRE(measures);
  Json record = Json::object();
  measures->add_to(record);
  return record;
}

/// Compares numbers and arrays of numbers. The tolerance is absolute for numbers below 1, and relative for
/// larger numbers.
void check_close(const Json& found, const Json& expected, double tolerance) {
  if (!expected.is_array()) {
    CHECK(std::abs(found.as_double() - expected.as_double()) <=
          tolerance * std::max(1.0, std::abs(expected.as_double())));
    return;
  }
  REQUIRE(found.items().size() == expected.items().size());
  for (size_t i = 0; i < found.items().size(); ++i)
    check_close(found.items()[i], expected.items()[i], tolerance);
}

const std::map<std::string, std::string> kPlain = {
    {"classes_loss", "1.3257685285508236"},
    {"classes_sparse_categorical_accuracy", "0.6872037914691943"},
    {"classes_f1_score", "0.6859687063754385"},
    {"classes_f1_micro", "0.6872037914691943"},
    {"classes_f1_weighted", "0.6835723035652577"},
    {"classes_f1_each", "[0.6782608695652174, 0.6727272727272727, 0.6236559139784946, 0.7692307692307693]"},
    {"classes_dice", "0.6859687063754385"},
    {"classes_dice_each", "[0.6727272727272727, 0.6236559139784946, 0.7692307692307693]"},
    {"classes_precision", "0.6892961666707035"},
    {"classes_recall", "0.6917424633969987"},
    {"classes_precision_each", "[0.65, 0.6981132075471698, 0.7073170731707317, 0.7017543859649122]"},
    {"classes_confusion_matrix", "[[39, 8, 5, 3], [8, 37, 4, 8], [11, 6, 29, 6], [2, 2, 3, 40]]"},
    {"classes_mean_iou", "0.5245330524513339"},
    {"classes_cohen_kappa", "0.5829165293959089"},
    {"classes_linear_kappa", "0.6184989541603148"},
    {"classes_quadratic_kappa", "0.6605522234074177"},
    {"classes_matthews_correlation", "0.5852141084209791"},
    {"classes_perplexity", "3.765077796641475"},
    {"classes_precision_at_recall", "0.2524271844660194"},
    {"classes_auc", "0.7652556916507459"},
    {"classes_auc_pr", "0.5708942729383111"},
    {"yes_loss", "0.4099662414264195"},
    {"yes_f1_score", "0.7960199004975125"},
    {"yes_precision", "0.7079646017699115"},
    {"yes_recall", "0.9090909090909091"},
    {"yes_auc", "0.9229490022172949"},
    {"yes_auc_pr", "0.902845774859263"},
    {"yes_precision_at_recall", "0.9387755102040817"},
    {"amount_r2_score", "0.8985102804058228"},
    {"amount_root_mean_squared_error", "0.5813553471771385"},
    {"amount_mean_absolute_error", "0.5140771823228995"},
    {"amount_mean_absolute_percentage_error", "164.72250171361807"}};

const std::map<std::string, std::string> kWeighted = {
    {"classes_loss", "1.346351903404051"},
    {"classes_sparse_categorical_accuracy", "0.6739171910206566"},
    {"classes_f1_score", "0.6717685530790455"},
    {"classes_f1_micro", "0.6739171910206566"},
    {"classes_f1_weighted", "0.6695045024050168"},
    {"classes_f1_each", "[0.6546887714457641, 0.6733196371697058, 0.5969406307425942, 0.7621251729581177]"},
    {"classes_dice", "0.6717685530790455"},
    {"classes_dice_each", "[0.6733196371697058, 0.5969406307425942, 0.7621251729581177]"},
    {"classes_precision", "0.6793294654214045"},
    {"classes_recall", "0.6787086491434364"},
    {"classes_precision_each",
     "[0.6065690549242897, 0.6961103451230289, 0.717730679889088, 0.6969077817492112]"},
    {"classes_confusion_matrix",
     "[[37.94696189370006, 9.670825108885765, 4.055636966601014, 1.6902410387992859], "
     "[8.022819995880127, 38.215803008526564, 4.221343040466309, 8.155569955706596], "
     "[14.521646082401276, 3.8987710499204695, 27.275890972465277, 7.6863380873110145], "
     "[2.0685750246047974, 3.113659977912903, 2.450089931488037, 40.312124133110046]]"},
    {"classes_mean_iou", "0.5088239106697392"},
    {"classes_cohen_kappa", "0.5654332314630246"},
    {"classes_linear_kappa", "0.604764001146799"},
    {"classes_quadratic_kappa", "0.655130881867123"},
    {"classes_matthews_correlation", "0.5690461383975647"},
    {"classes_perplexity", "3.843378890709388"},
    {"classes_precision_at_recall", "0.2582386270975872"},
    {"classes_auc", "0.7603823365554488"},
    {"classes_auc_pr", "0.5763799931713649"},
    {"yes_loss", "0.41267715860434345"},
    {"yes_f1_score", "0.7998050077301262"},
    {"yes_precision", "0.7123780451506356"},
    {"yes_recall", "0.9116930009375793"},
    {"yes_auc", "0.9246848243006902"},
    {"yes_auc_pr", "0.908765602031051"},
    {"yes_precision_at_recall", "0.9562939135893116"},
    {"amount_r2_score", "0.8904856920963811"},
    {"amount_root_mean_squared_error", "0.5797033728116642"},
    {"amount_mean_absolute_error", "0.5113239510879041"},
    {"amount_mean_absolute_percentage_error", "207.20593209967842"}};

}  // namespace

TEST_CASE("losses and metrics equal scikit-learn's for any number of replicas and any batch size") {
  for (const bool weighted : {false, true}) {
    CAPTURE(weighted);
    std::string first;
    for (const int replicas : {1, 2, 3, 5}) {
      for (const int64_t batch : {7, 64, 100}) {
        CAPTURE(replicas);
        CAPTURE(batch);
        const Json found = measure(config_of(replicas, batch, weighted), weighted);
        for (const auto& [key, expected] : weighted ? kWeighted : kPlain) {
          const std::string& name = key;
          CAPTURE(name);
          REQUIRE(found.find(name));
          const bool in_buckets =
              name.find("auc") != std::string::npos || name.find("at_recall") != std::string::npos;
          check_close(found.at(name), Json::parse(expected), in_buckets ? Measures::kStatedAccuracy : 1e-6);
        }
        CHECK(found.at("loss").as_double() ==
              doctest::Approx(found.at("classes_loss").as_double() + 0.5 * found.at("yes_loss").as_double()));
        if (weighted) continue;
        // Sums of integers do not depend on the order. They must be bitwise equal.
        std::string counted;
        for (const char* name : {"classes_f1_each", "classes_auc", "classes_confusion_matrix", "yes_auc_pr",
                                 "classes_cohen_kappa", "yes_precision_at_recall"})
          counted += found.at(name).dump();
        if (first.empty()) first = counted;
        CHECK(counted == first);
      }
    }
  }
}
