#include "print/schedule_view.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/diagnostics.h"
#include "distribute/schedule_table.h"

namespace dtrain {

ScheduleView view_schedule(const RunPlan& plan, Engine* engine) {
  const RunConfig& config = plan.config;
  const Placement& placement = plan.placement;
  if (placement.schedule == PipelineSchedule::sequential)
    throw UserError(
        located(config.place({"strategy"}),
                fmt::format("--schedule: the strategy '{}' is not a pipeline; use `strategy: pipeline`",
                            config.strategy.name)));
  ScheduleView view;
  view.work = pipeline_work(config, plan.placement_of_all(), config.train.batch_size);
  view.measured = engine != nullptr;
  std::vector<PipelineDevice> devices = pipeline_devices(placement);
  if (engine) {
    constexpr double kSeconds = 1.5;
    const std::vector<std::vector<double>> measured = engine->measure_layers(view.work.samples, kSeconds);
    for (size_t stage = 0; stage < devices.size(); ++stage) devices[stage].seconds = measured[stage];
  }
  for (const PipelineDevice& device : devices) view.devices.push_back(device.device.str());
  view.times = pipeline_times(config.graph, placement.slots, devices, view.work);
  return view;
}

std::string schedule_text(const ScheduleView& view, int columns) {
  const std::string part =
      view.work.rounds > 1 ? fmt::format("each of the {} parts of a batch", view.work.rounds) : "a batch";
  return fmt::format("The schedule of {} in microbatches of {}, with {} times:\n\n", part,
                     format_plural(view.work.samples, "sample"), view.measured ? "measured" : "estimated") +
         schedule_table(view.work.schedule, view.work.microbatches, view.times, view.devices, columns);
}

Json schedule_json(const ScheduleView& view) {
  const PipelineTimeline timeline = simulate(view.work.schedule, view.work.microbatches, view.times);
  Json stages = Json::array();
  for (size_t stage = 0; stage < timeline.stages.size(); ++stage) {
    Json tasks = Json::array();
    for (const auto& [task, begin, end] : timeline.stages[stage])
      tasks.push(Json::object()
                     .set("kind", task.kind == StageTask::Kind::forward ? "forward" : "backward")
                     .set("microbatch", task.microbatch)
                     .set("begin", begin)
                     .set("end", end));
    stages.push(Json::object()
                    .set("device", view.devices[stage])
                    .set("forward", view.times.stages[stage].forward)
                    .set("backward", view.times.stages[stage].backward)
                    .set("tasks", std::move(tasks)));
  }
  return Json::object()
      .set("schedule", view.work.schedule == PipelineSchedule::gpipe ? "gpipe" : "1f1b")
      .set("microbatches", view.work.microbatches)
      .set("rounds", view.work.rounds)
      .set("samples", view.work.samples)
      .set("measured", view.measured)
      .set("seconds", timeline.makespan())
      .set("bubble", timeline.bubble())
      .set("stages", std::move(stages));
}

}  // namespace dtrain
