#include "distribute/schedule.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

using TaskKind = StageTask::Kind;

/// Returns the number of forward passes that a stage runs before its first backward pass.
int count_ahead(PipelineSchedule schedule, int stage, int stages, int microbatches) {
  switch (schedule) {
    case PipelineSchedule::sequential:
      break;
    case PipelineSchedule::gpipe:
      return microbatches;
    case PipelineSchedule::one_f_one_b:
      return std::min(stages - stage, microbatches);
  }
  return std::min(1, microbatches);
}

/// State of a simulation.
class Simulation {
 public:
  Simulation(std::span<const std::vector<StageTask>> tasks, const PipelineTimes& times)
      : tasks_(tasks), times_(times), done_(tasks.size()), free_at_(tasks.size()) {
    timeline_.stages.resize(tasks.size());
  }

  PipelineTimeline run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t stage = 0; stage < tasks_.size(); ++stage)
        while (do_next(stage)) moved = true;
    }
    for (size_t stage = 0; stage < tasks_.size(); ++stage) check_done(stage);
    return std::move(timeline_);
  }

 private:
  /// For each microbatch, the time at which a stage finished its task. nullopt if the stage has not finished
  /// the task.
  using Ends = std::vector<std::optional<double>>;
  struct Done {
    Ends forward, backward;  // end times, by microbatch
    Ends& of(TaskKind kind) { return kind == TaskKind::forward ? forward : backward; }
  };

  std::optional<double> end_of(size_t stage, StageTask task) {
    const Ends& ends = done_[stage].of(task.kind);
    const auto number = static_cast<size_t>(task.microbatch);
    return number < ends.size() ? ends[number] : std::nullopt;
  }

  /// Returns the time at which the input of a stage's task becomes available. Returns nullopt if this time is
  /// not yet known.
  std::optional<double> input_at(size_t stage, StageTask task) {
    const bool forward = task.kind == TaskKind::forward;
    const bool at_edge = forward ? stage == 0 : stage + 1 == tasks_.size();
    const std::optional<double> own =
        forward ? std::optional(0.0) : end_of(stage, {TaskKind::forward, task.microbatch});
    if (at_edge || !own) return own;
    std::optional<double> there = end_of(forward ? stage - 1 : stage + 1, task);
    if (!there) return there;
    if (!times_.transfers.empty()) *there += times_.transfers[forward ? stage - 1 : stage];
    return std::max(*own, *there);
  }

  bool do_next(size_t stage) {
    std::vector<PipelineTimeline::Entry>& entries = timeline_.stages[stage];
    if (entries.size() == tasks_[stage].size()) return false;
    const StageTask task = tasks_[stage][entries.size()];
    const std::optional<double> input = input_at(stage, task);
    if (!input) return false;
    const PipelineTimes::Stage& seconds = times_.stages[stage];
    const double begin = std::max(free_at_[stage], *input);
    const double end = begin + (task.kind == TaskKind::forward ? seconds.forward : seconds.backward);
    entries.push_back({task, begin, end});
    free_at_[stage] = end;
    Ends& ends = done_[stage].of(task.kind);
    ends.resize(std::max(ends.size(), static_cast<size_t>(task.microbatch) + 1));
    ends[static_cast<size_t>(task.microbatch)] = end;
    return true;
  }

  void check_done(size_t stage) const {
    const size_t done = timeline_.stages[stage].size();
    if (done == tasks_[stage].size()) return;
    const StageTask task = tasks_[stage][done];
    throw Error(
        fmt::format("the pipeline stages wait for each other (deadlock): stage {} cannot begin the {} pass "
                    "of microbatch {}",
                    stage, task.kind == TaskKind::forward ? "forward" : "backward", task.microbatch));
  }

  std::span<const std::vector<StageTask>> tasks_;
  const PipelineTimes& times_;
  std::vector<Done> done_;
  std::vector<double> free_at_;
  PipelineTimeline timeline_;
};

}  // namespace

std::vector<StageTask> stage_tasks(PipelineSchedule schedule, int stage, int stages, int microbatches) {
  std::vector<StageTask> tasks;
  int forward = 0;
  const int ahead = count_ahead(schedule, stage, stages, microbatches);
  while (forward < ahead) tasks.push_back({TaskKind::forward, forward++});
  for (int backward = 0; backward < microbatches; ++backward) {
    tasks.push_back({TaskKind::backward, backward});
    if (forward < microbatches) tasks.push_back({TaskKind::forward, forward++});
  }
  return tasks;
}

int most_in_flight(PipelineSchedule schedule, int stage, int stages, int microbatches) {
  // The stage first runs count_ahead() forward passes. Before each further forward pass, it runs a backward
  // pass, which frees the memory of one microbatch.
  return count_ahead(schedule, stage, stages, microbatches);
}

double least_bubble(PipelineSchedule schedule, int stages, int microbatches) {
  const int at_once = schedule == PipelineSchedule::sequential ? 1 : microbatches;
  return static_cast<double>(stages - 1) / (at_once + stages - 1);
}

double PipelineTimeline::makespan() const {
  double last = 0;
  for (const std::vector<Entry>& entries : stages)
    if (!entries.empty()) last = std::max(last, entries.back().end);
  return last;
}

double PipelineTimeline::busy(size_t stage) const {
  double seconds = 0;
  for (const Entry& entry : stages[stage]) seconds += entry.end - entry.begin;
  return seconds;
}

double PipelineTimeline::bubble() const {
  const double whole = static_cast<double>(stages.size()) * makespan();
  double all = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) all += busy(stage);
  return whole > 0 ? 1 - all / whole : 0;
}

PipelineTimeline simulate(std::span<const std::vector<StageTask>> tasks, const PipelineTimes& times) {
  return Simulation(tasks, times).run();
}

PipelineTimeline simulate(PipelineSchedule schedule, int microbatches, const PipelineTimes& times) {
  const int stages = static_cast<int>(times.stages.size());
  std::vector<std::vector<StageTask>> tasks;
  for (int stage = 0; stage < stages; ++stage)
    tasks.push_back(stage_tasks(schedule, stage, stages, microbatches));
  return simulate(tasks, times);
}

}  // namespace dtrain
