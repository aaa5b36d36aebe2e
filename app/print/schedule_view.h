// A pipeline's schedule before it runs, as people and programs read it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/replicas.h"
#include "estimate/pipeline_estimate.h"

namespace dtrain {

/// What `check --schedule` shows: of the first replica, all others being alike.
struct ScheduleView {
  std::vector<std::string> devices;  // by stage
  PipelineWork work;
  PipelineTimes times;
  bool measured = false;
};

/// The schedule of a run that is laid out already. `replicas`, unless null, measure the layers' times, a
/// second or two long; else they are estimated. Throws UserError where the strategy is no pipeline.
ScheduleView view_schedule(const RunConfig& config, const Placement& placement, Replicas* replicas);

/// `columns` wide.
std::string schedule_text(const ScheduleView& view, int columns);
/// {schedule, microbatches, samples, measured, seconds, bubble, stages: [{device, forward, backward, tasks:
/// [{kind, microbatch, begin, end}]}]}, in seconds.
Json schedule_json(const ScheduleView& view);

}  // namespace dtrain
