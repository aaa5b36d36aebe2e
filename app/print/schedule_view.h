// Formats the planned schedule of a pipeline as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "estimate/pipeline_estimate.h"

namespace dtrain {

/// The data that `check --schedule` shows. It is for the first replica; all replicas have the same schedule.
struct ScheduleView {
  std::vector<std::string> devices;  // device of each stage
  PipelineWork work;
  PipelineTimes times;
  bool measured = false;
};

/// Returns the schedule of a plan. If `engine` is not null, measures the layers' times with it, which takes a
/// second or two. Otherwise estimates the times. Throws UserError if the strategy is not a pipeline.
ScheduleView view_schedule(const RunPlan& plan, Engine* engine);

/// Returns the schedule as a table at most `columns` characters wide.
std::string schedule_text(const ScheduleView& view, int columns);
/// Returns {schedule, microbatches, rounds, samples, measured, seconds, bubble, stages: [{device, forward,
/// backward, tasks: [{kind, microbatch, begin, end}]}]}. Times are in seconds.
Json schedule_json(const ScheduleView& view);

}  // namespace dtrain
