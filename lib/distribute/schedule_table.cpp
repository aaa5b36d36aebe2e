#include "distribute/schedule_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace dtrain {

namespace {

using Entry = PipelineTimeline::Entry;

char letter_of(const Entry& entry) {
  return entry.task.kind == StageTask::Kind::forward ? 'F' : 'B';
}

std::string label_of(const Entry& entry) {
  return fmt::format("{}{}", letter_of(entry), entry.task.microbatch);
}

/// Returns a cell of `width` characters: the label, followed by the character `fill`. The last character is a
/// space if the label leaves room for it.
std::string cell(const std::string& label, size_t width, char fill) {
  std::string text = label + std::string(width - std::min(width, label.size()), fill);
  if (width > std::max<size_t>(label.size(), 1)) text.back() = ' ';
  return text;
}

/// Returns the number of columns that represent one second. It is just large enough for the labels, but
/// limited by the number of available columns.
double scale_of(const PipelineTimeline& timeline, int columns) {
  double shortest = std::numeric_limits<double>::infinity();
  size_t label = 0;
  for (const std::vector<Entry>& entries : timeline.stages)
    for (const Entry& entry : entries) {
      if (entry.end > entry.begin) shortest = std::min(shortest, entry.end - entry.begin);
      label = std::max(label, label_of(entry).size());
    }
  const double makespan = timeline.makespan();
  if (makespan <= 0) return 0;
  return std::min((static_cast<double>(label) + 1) / shortest, columns / makespan);
}

size_t column_of(double seconds, double scale) {
  return static_cast<size_t>(std::lround(seconds * scale));
}

/// Returns whether every task is at least as wide as its label.
bool shows_labels(const PipelineTimeline& timeline, double scale) {
  return std::all_of(timeline.stages.begin(), timeline.stages.end(), [&](const auto& entries) {
    return std::all_of(entries.begin(), entries.end(), [&](const Entry& entry) {
      return column_of(entry.end, scale) - column_of(entry.begin, scale) >= label_of(entry).size();
    });
  });
}

std::string draw_labels(const std::vector<Entry>& entries, double scale, size_t width) {
  std::string line;
  for (const Entry& entry : entries) {
    const size_t begin = column_of(entry.begin, scale), end = column_of(entry.end, scale);
    line += cell("", begin - line.size(), '.');
    line += cell(label_of(entry), end - begin, '-');
  }
  line += cell("", width - line.size(), '.');
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string draw_letters(const std::vector<Entry>& entries, double scale, size_t width) {
  struct Seconds {
    double forward = 0, backward = 0;
  };
  std::vector<Seconds> columns(width);
  for (const Entry& entry : entries)
    for (size_t c = static_cast<size_t>(entry.begin * scale); c < width; ++c) {
      const double inside = std::min(entry.end * scale, static_cast<double>(c + 1)) -
                            std::max(entry.begin * scale, static_cast<double>(c));
      if (inside <= 0) break;
      (entry.task.kind == StageTask::Kind::forward ? columns[c].forward : columns[c].backward) += inside;
    }
  constexpr double kLeast = 0.125;  // fraction of a column's time; a column with less work is shown as idle
  constexpr double kPart = 0.25;    // fraction of the work in a column; a smaller part is not shown
  std::string line;
  for (const Seconds& column : columns) {
    const double busy = column.forward + column.backward;
    line += busy < kLeast                                               ? '.'
            : std::min(column.forward, column.backward) >= kPart * busy ? '*'
            : column.forward > column.backward                          ? 'F'
                                                                        : 'B';
  }
  return line;
}

int most_held(const std::vector<Entry>& entries) {
  int held = 0, most = 0;
  for (const Entry& entry : entries) {
    held += entry.task.kind == StageTask::Kind::forward ? 1 : -1;
    most = std::max(most, held);
  }
  return most;
}

std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

/// Describes the bubble, that is, the time in which stages wait, and its reasons.
std::string bubble_text(const PipelineTimeline& timeline, PipelineSchedule schedule, int microbatches) {
  const size_t stages = timeline.stages.size();
  double mean = 0;
  size_t slowest = 0;
  for (size_t stage = 0; stage < stages; ++stage) {
    mean += timeline.busy(stage) / static_cast<double>(stages);
    if (timeline.busy(stage) > timeline.busy(slowest)) slowest = stage;
  }
  const auto percent = [](double part) { return fmt::format("{:.0f} %", part * 100); };
  std::string text = fmt::format(
      "bubble: the stages are idle for {} of the total time ({}); stages of equal duration would be idle for "
      "{}",
      percent(timeline.bubble()), duration(timeline.makespan()),
      percent(least_bubble(schedule, static_cast<int>(stages), microbatches)));
  constexpr double kUneven = 1.05;
  if (timeline.busy(slowest) > kUneven * mean)
    text += fmt::format("\nstage {} computes {:.2f} times as long as the average stage", slowest,
                        timeline.busy(slowest) / mean);
  return text + "\n";
}

}  // namespace

std::vector<std::string> draw_timeline(const PipelineTimeline& timeline, int columns) {
  const double scale = scale_of(timeline, columns), makespan = timeline.makespan();
  const bool labels = shows_labels(timeline, scale);
  const size_t width = labels ? column_of(makespan, scale) : static_cast<size_t>(makespan > 0 ? columns : 0);
  std::vector<std::string> lines;
  for (const std::vector<Entry>& entries : timeline.stages)
    lines.push_back(labels ? draw_labels(entries, scale, width)
                           : draw_letters(entries, static_cast<double>(width) / makespan, width));
  return lines;
}

std::string schedule_table(PipelineSchedule schedule, int microbatches, const PipelineTimes& times,
                           std::span<const std::string> devices, int columns) {
  const PipelineTimeline timeline = simulate(schedule, microbatches, times);
  std::vector<std::string> names;
  for (const std::string& device : devices) names.push_back(fmt::format("{} {}", names.size(), device));
  size_t width = std::string_view("stage").size();
  for (const std::string& name : names) width = std::max(width, name.size());
  const auto line = [&](const std::string& name, const std::string& busy, const auto& held) {
    return fmt::format("{:<{}}  {:>5}  {:>4}  ", name, width, busy, held);
  };
  const std::string titles = line("stage", "busy", "held");
  constexpr int kLeastPicture = 20;
  const std::vector<std::string> drawn =
      draw_timeline(timeline, std::max(columns - static_cast<int>(titles.size()), kLeastPicture));
  const bool mixes = std::any_of(drawn.begin(), drawn.end(), [](const std::string& picture) {
    return picture.find('*') != std::string::npos;
  });
  std::string text = titles + "F forward, B backward, " + (mixes ? "* both, " : "") + ". waits\n";
  const double makespan = timeline.makespan();
  for (size_t stage = 0; stage < drawn.size(); ++stage) {
    const double busy = makespan > 0 ? timeline.busy(stage) / makespan : 0;
    text += line(names[stage], fmt::format("{:.0f} %", busy * 100), most_held(timeline.stages[stage])) +
            drawn[stage] + "\n";
  }
  return text + bubble_text(timeline, schedule, microbatches);
}

}  // namespace dtrain
