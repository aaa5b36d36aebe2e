#include "runs/run_recorder.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/invocation.h"
#include "cli/signals.h"
#include "print/libraries_json.h"
#include "print/memory_table.h"
#include "print/model_table.h"
#include "report/report.h"
#include "report/shown_samples.h"
#include "runs/histograms.h"

namespace dtrain {

namespace {

Json layers_json(const Graph& graph) {
  Json layers = Json::array();
  for (const LayerRow& row : layer_rows(graph))
    layers.push(Json::object()
                    .set("name", row.name)
                    .set("kind", row.kind)
                    .set("output", row.output.shape.str())
                    .set("parameters", row.parameters)
                    .set("trainable", row.trainable));
  return layers;
}

Json memory_json(Trainer& trainer) {
  Json replicas = Json::array();
  for (const MemoryPlan& plan :
       trainer.engine().memory().plan(Plan::Purpose::training, trainer.config().train.batch_size)) {
    Json replica = Json::object();
    replica.set("replica", plan.replica)
        .set("slot", plan.slot)
        .set("device", plan.device.str())
        .set("threads", plan.threads)
        .set("share", plan.share);
    replicas.push(std::move(set_bytes(replica, plan)));
  }
  return replicas;
}

}  // namespace

Json& describe_run(Json& event, Trainer& trainer) {
  const RunConfig& config = trainer.config();
  Json devices = Json::array(), samples = Json::object(), classes = Json::object();
  for (const auto& [target, names] : config.dataset.facts.source.class_names) {
    Json list = Json::array();
    for (const std::string& name : names) list.push(name);
    classes.set(target, std::move(list));
  }
  for (const DeviceId& device : trainer.plan().placement.devices()) devices.push(device.str());
  samples.set("train", trainer.loader().samples());
  if (trainer.validation()) samples.set("validation", trainer.validation()->samples());
  return event.set("devices", std::move(devices))
      .set("samples", std::move(samples))
      .set("classes", std::move(classes))
      .set("parameters", config.graph.count_parameters(true) + config.graph.count_parameters(false))
      .set("layers", layers_json(config.graph))
      .set("memory", memory_json(trainer))
      .set("libraries", libraries_json());
}

void RunRecorder::begin(Trainer& trainer) {
  trainer_ = &trainer;
  options_ = tensorboard_options(trainer.config());
  const TrainingState& state = trainer.state();
  first_step_ = state.step;
  tensorboard_ =
      std::make_unique<TensorBoard>(directory_, options_, state.epoch, state.step,
                                    [this](const std::string& message) { next_.on_warning(message); });
  const RunConfig& config = trainer.config();
  tensorboard_->add_model(config.graph, trainer.loader().dataset(), config.seed);
}

void RunRecorder::end(bool complete) {
  tensorboard_->flush();
  if (complete && trainer_->state().step > first_step_) write_samples();
  write_report(false);
}

/// Writes samples of the data with the predictions for them. Only this process computes the predictions, so
/// nothing is written if other processes have parts of the weights.
void RunRecorder::write_samples() {
  if (!trainer_->engine().state().has_all_weights()) return;
  try {
    const Loader* validation = trainer_->validation();
    Json samples = show_samples(
        trainer_->config(), trainer_->engine(), (validation ? validation : &trainer_->loader())->dataset(),
        validation ? "validation" : "train", [] { return catch_signals().stop != 0; });
    if (samples.is_null()) return;
    samples.set("epoch", trainer_->state().epoch);
    directory_.write_samples(samples.dump() + "\n");
  } catch (const std::exception& error) {
    next_.on_warning(error.what());
  }
}

void RunRecorder::on_step(const Progress& progress) {
  tensorboard_->add_step(progress);
  next_.on_step(progress);
}

void RunRecorder::on_epoch(const Json& record, int64_t epochs) {
  const int64_t epoch = record.at("epoch").as_int();
  tensorboard_->add_epoch(record);
  if (options_.wants_histograms(epoch))
    read_histograms(trainer_->engine(), options_.write_grads,
                    [&](const std::string& name, std::span<const float> values) {
                      tensorboard_->add_histogram(epoch, name, values);
                    });
  if (Clock::now() - reported_ >= between_) write_report(true);
  next_.on_epoch(record, epochs);
}

void RunRecorder::write_report(bool running) {
  const auto begin = Clock::now();
  try {
    if (!directory_.has_begun()) return;
    RunFiles run = read_run_files(directory_.path());
    // The files may lack epochs that ended after the last save, so the report uses the records in memory.
    run.records = parse_json_lines(trainer_->state().history.text());
    run.tables = parse_tables(trainer_->state().table_lines());
    run.running = running;
    if (trainer_->state().step > first_step_) run.seconds = trainer_->time_spent().to_json();
    directory_.write_report(report_page({&run, 1}, "dtrain " DTRAIN_VERSION, format_time_now()));
  } catch (const std::exception& error) {
    if (!report_failed_) next_.on_warning(error.what());
    report_failed_ = true;
  }
  reported_ = Clock::now();
  constexpr int kHundredth = 100;
  between_ = std::max<Clock::duration>(std::chrono::seconds(10), kHundredth * (reported_ - begin));
}

}  // namespace dtrain
