// A pipeline's schedule as people read it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "distribute/schedule.h"

namespace dtrain {

/// What each stage does from the timeline's begin to its end, a line a stage, at most `columns` wide and no
/// wider than the numbers of the microbatches need: "F0 F1 .. B0--- F2". Where that does not fit, each
/// column says what the stage has done in its time: 'F', 'B', '*' both, '.' nothing to speak of.
std::vector<std::string> draw_timeline(const PipelineTimeline& timeline, int columns);

/// A table with a line a stage: its device, the part of the time in which it computes, of how many
/// microbatches it holds the activations at most, and what it does when. Below: how long a
/// batch takes, the bubble, how much of it the schedule makes and how much stages that take longer than
/// others. `devices`: names, by stage. The table is `columns` wide, or wider where that leaves the picture
/// less than 20.
std::string schedule_table(PipelineSchedule schedule, int microbatches, const PipelineTimes& times,
                           std::span<const std::string> devices, int columns);

}  // namespace dtrain
