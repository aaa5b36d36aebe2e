// Text drawing of a pipeline's schedule.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "distribute/schedule.h"

namespace dtrain {

/// Draws the timeline, one line per stage, at most `columns` wide and no wider than needed for the microbatch
/// numbers: "F0 F1 .. B0--- F2". If these do not fit, each column shows the stage's main activity in that
/// time: 'F', 'B', '*' for both, '.' if it is mostly idle.
std::vector<std::string> draw_timeline(const PipelineTimeline& timeline, int columns);

/// Returns a table with one line per stage: its device, the fraction of time in which it computes, the
/// maximum number of microbatches whose activations it holds, and its timeline. The lines below it give the
/// bubble, the time of all microbatches, the bubble that the schedule would have with equal stages, and a
/// stage that is slower than the others. `devices`: names, by stage. The table is `columns` wide, or wider if
/// the timeline would otherwise have less than 20 columns.
std::string schedule_table(PipelineSchedule schedule, int microbatches, const PipelineTimes& times,
                           std::span<const std::string> devices, int columns);

}  // namespace dtrain
