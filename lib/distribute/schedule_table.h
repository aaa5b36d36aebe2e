// Text drawing of a pipeline's schedule.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "distribute/schedule.h"

namespace dtrain {

/// Draws the timeline as text, with one line per stage. If the labels of the microbatches fit, a line looks
/// like "F0 F1 .. B0--- F2", and is only as wide as the labels need. Otherwise each column is one character
/// that shows how the stage spends most of the column's time: 'F', 'B', '*' for both, or '.' if the stage is
/// mostly idle. The drawing has at most `columns` columns.
std::vector<std::string> draw_timeline(const PipelineTimeline& timeline, int columns);

/// Returns a table with one line per stage. Each line shows the stage's device, the fraction of time in which
/// the stage computes, the maximum number of microbatches whose activations it keeps, and its timeline. The
/// lines below the table state the bubble, the total time of all microbatches, and the bubble that the
/// schedule would have with equal stages. If a stage is slower than the others, it is named. `devices`: the
/// name of each stage's device. The table has `columns` columns, or more if the timeline would otherwise have
/// fewer than 20 columns.
std::string schedule_table(PipelineSchedule schedule, int microbatches, const PipelineTimes& times,
                           std::span<const std::string> devices, int columns);

}  // namespace dtrain
