#include "train/exported_run.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/philox.h"
#include "config/schema.h"
#include "data/loader/batch.h"
#include "engine/engine.h"
#include "run/probabilities.h"
#include "run/row_weights.h"
#include "run/target_scale.h"
#include "run/unit_plan.h"
#include "train/restored_state.h"

namespace dtrain {

namespace {

constexpr int64_t kProbes = 2;  // number of samples

ExportedScale exported_scale(const TargetScale& scale, bool are_logits) {
  if (are_logits) return {};
  return {scale.scale(), scale.offset()};
}

/// A batch of probes: random inputs for which the outputs of the exported model are checked.
class ProbeBatch : public Batch {
 public:
  ProbeBatch(const ExportedModel& model, const std::vector<std::vector<float>>& inputs)
      : model_(model), inputs_(inputs) {}
  int64_t size() const override { return kProbes; }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (i >= dst.size() || !dst[i]) continue;
      const auto row = static_cast<int64_t>(inputs_[i].size()) / kProbes;
      for (int64_t k = 0; k < count * row; ++k) {
        const float value = inputs_[i][static_cast<size_t>(first * row + k)];
        if (model_.graph->spec({model_.graph->inputs[i]}).dtype == DType::int32)
          dst[i].as<int32_t>()[k] = static_cast<int32_t>(value);
        else
          dst[i].f32()[k] = value;
      }
    }
  }

 private:
  const ExportedModel& model_;
  const std::vector<std::vector<float>>& inputs_;
};

/// Returns random values for an input of the model: values between -1 and 1, or random indices for an int32
/// input. If a layer masks index 0 as padding, some indices are 0.
std::vector<float> draw_probe(const Graph& graph, size_t input) {
  const TensorSpec& spec = graph.spec({graph.inputs[input]});
  const Philox draw = Philox::of(0, 0x50524f42);  // "PROB"
  const GraphNode* const reader = graph.reader_of_indices(graph.inputs[input]);
  const auto indices = reader ? reader->layer->indices() : std::nullopt;
  std::vector<float> values(static_cast<size_t>(kProbes * spec.shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const float drawn = uniform01(draw(input, i).v[0]);
    constexpr int64_t kMostIndices = 1 << 24;  // float32 represents all smaller integers exactly
    const auto most = static_cast<float>(std::min(indices.value_or(2), kMostIndices));
    values[i] = spec.dtype == DType::int32 ? std::floor(drawn * most) : drawn * 2 - 1;
    constexpr float kPadding = 0.3f;  // fraction of indices that are padding
    if (reader && reader->layer->creates_mask() && uniform01(draw(input, i).v[1]) < kPadding) values[i] = 0;
  }
  return values;
}

/// Returns the values that the exported model must receive so that its layers receive `values`. (They differ
/// if the exported model includes transforms.) Because this conversion rounds, `values` is updated to the
/// numbers that result from the rounded values.
std::vector<float> as_given(const ExportedInput& input, std::vector<float>& values) {
  std::vector<float> given = values;
  for (size_t i = 0; i < given.size() && !input.scale.empty(); ++i) {
    const size_t element = i % input.scale.size();
    const auto center = static_cast<float>(input.center[element]);
    const auto scale = static_cast<float>(input.scale[element]);
    given[i] = values[i] / scale + center;
    values[i] = (given[i] - center) * scale;
  }
  return given;
}

void finish_output(const ExportedOutput& output, int64_t columns, std::vector<float>& values) {
  if (output.finish != ExportedOutput::Finish::none)
    make_probabilities(
        output.finish == ExportedOutput::Finish::sigmoid ? Scores::sigmoid_logits : Scores::softmax_logits,
        values, columns);
  for (size_t i = 0; i < values.size() && !output.scale.empty(); ++i) {
    const size_t element = i % output.scale.scale.size();
    values[i] = static_cast<float>(static_cast<double>(values[i]) * output.scale.scale[element] +
                                   output.scale.offset[element]);
  }
}

ExportedProbes make_probes(const SavedRun& run, const ExportedModel& model) {
  // The probes are computed on one CPU of this process, even if the run was trained on other devices.
  RunPlan plan{run.config, {.replicas = {{DeviceId{}}}, .slots = {}}, single_process(), {0, {1}}};
  plan.config.train.precision = Precision::float32;
  Engine engine(plan);
  engine.memory().set_data({.most_samples = kProbes});
  engine.allocate(Plan::Purpose::prediction, kProbes);
  restore_weights(run.checkpoint, engine);
  engine.state().finish_writing();
  ExportedProbes probes{kProbes, {}, {}};
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    inputs.push_back(draw_probe(plan.config.graph, i));
    probes.inputs.push_back(as_given(model.inputs[i], inputs.back()));
  }
  std::vector<View> views;
  for (const ValueRef output : plan.config.graph.outputs) {
    const Shape shape = plan.config.graph.spec(output).shape.prepended(kProbes);
    views.push_back({probes.outputs.emplace_back(static_cast<size_t>(shape.elements())).data(), shape});
  }
  // The views remain valid although emplace_back() above may have moved the vectors, because the elements of
  // a moved vector keep their addresses.
  engine.predict(ProbeBatch(model, inputs), views);
  for (size_t i = 0; i < probes.outputs.size(); ++i)
    finish_output(model.outputs[i], views[i].shape.back(), probes.outputs[i]);
  return probes;
}

ExportedInput exported_input(const RunConfig& config, const TensorSpec& spec, bool with_preprocessing,
                             std::vector<std::string>& warnings) {
  ExportedInput input{spec, {}, {}};
  if (!with_preprocessing || spec.dtype != DType::float32) return input;
  const ColumnPlan plan = unit_plan_of_input(config, spec);
  const auto map = plan.exact_map();  // has pointers into `plan`
  const auto is_zero = [](double one) { return one == 0; };
  if (!map || std::any_of(map->scale.begin(), map->scale.end(), is_zero)) {
    warnings.push_back(fmt::format(
        "the transforms of the input '{}' are not only a scale and an offset, so they are not in the "
        "exported model, which expects transformed values; the metadata of the file describes the transforms",
        spec.name));
    return input;
  }
  input.given.shape = plan.stored().shape;
  for (size_t i = 0; i < map->scale.size(); ++i) {
    input.scale.push_back(map->scale[i]);
    input.center.push_back(-map->offset[i] / map->scale[i]);
  }
  return input;
}

ExportedOutput exported_output(const RunConfig& config, size_t index, bool are_probabilities) {
  const Head& head = config.heads[index];
  ExportedOutput output;
  output.name = config.graph.layer_name(head.output.node);
  const Scores scores = head.scores();
  const bool has_logits = are_logits(scores);
  if (has_logits && are_probabilities)
    output.finish = scores == Scores::sigmoid_logits || config.graph.spec(head.output).shape.columns() == 1
                        ? ExportedOutput::Finish::sigmoid
                        : ExportedOutput::Finish::softmax;
  output.scale = exported_scale(TargetScale(config, index), has_logits && !are_probabilities);
  return output;
}

Json describe(const RunConfig& config, const ExportedModel& model, const ExportRequest& request) {
  Json outputs = Json::object();
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const Scores scores = config.heads[i].scores();
    const bool is_probability =
        scores == Scores::probabilities || model.outputs[i].finish != ExportedOutput::Finish::none;
    Json output = Json::object().set("numbers", is_probability       ? "probabilities"
                                                : are_logits(scores) ? "logits"
                                                                     : "predictions");
    Json names = Json::array();
    for (const std::string& name : class_names(config, config.dataset.facts, i)) names.push(name);
    if (!names.items().empty()) output.set("classes", std::move(names));
    outputs.set(model.outputs[i].name, std::move(output));
  }
  Json metadata = Json::object().set("outputs", std::move(outputs));
  metadata.set("preprocessing", request.with_preprocessing ? "in the model" : "not in the model");
  if (const ConfigNode* transforms =
          config.dataset.resolved.is_mapping() ? config.dataset.resolved.find("transforms") : nullptr)
    metadata.set("transforms", to_json(*transforms));
  if (!config.dataset.facts.empty()) metadata.set("data", config.dataset.facts.to_json());
  return metadata;
}

}  // namespace

ExportedRun exported_run(const SavedRun& run, const ExportRequest& request) {
  const RunConfig& config = run.config;
  ExportedRun exported;
  ExportedModel& model = exported.model;
  model.graph = &config.graph;
  model.name = config.name;
  for (const TensorSpec& input : config.graph.input_specs())
    model.inputs.push_back(exported_input(config, input, request.with_preprocessing, exported.warnings));
  for (size_t i = 0; i < config.heads.size(); ++i)
    model.outputs.push_back(exported_output(config, i, request.are_probabilities));
  model.metadata = describe(config, model, request);
  model.probes = make_probes(run, model);  // also checks that every weight exists and has the right shape
  model.values = [&run](int node, size_t parameter) {
    const GraphNode& layer = run.config.graph.nodes[static_cast<size_t>(node)];
    const ArrayRef* weight = run.checkpoint.weight(layer.name + "/" + layer.parameters[parameter].name);
    return std::span(static_cast<const float*>(weight->data), static_cast<size_t>(weight->shape.elements()));
  };
  return exported;
}

}  // namespace dtrain
