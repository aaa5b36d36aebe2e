// In which order the stages of a pipeline work through a batch's microbatches, and how long that takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// A batch goes through `stages` as `microbatches`, all of them forward and backward. Under every schedule
/// and on every stage the backwards run in the order of the microbatches, so that each stage sums its
/// gradients in the order in which one device would.
enum class PipelineSchedule {
  sequential,   // each microbatch forward and backward before the next: one stage computes at a time
  gpipe,        // all forwards, then all backwards (Huang et al., "GPipe", 2019)
  one_f_one_b,  // 1F1B: as soon as a microbatch can go backward it does (Narayanan et al., "Memory-Efficient
                // Pipeline-Parallel DNN Training", 2021: PipeDream-Flush)
};

/// What a stage does at a time: one microbatch through its layers, one way or the other.
struct StageTask {
  enum class Kind : uint8_t { forward, backward } kind = Kind::forward;
  int microbatch = 0;
  bool operator==(const StageTask&) const = default;
};

/// All tasks of a stage in their order: each microbatch once forward and once backward.
/// GPipe's paper runs the backwards in the reversed order; that takes as long and holds as much.
std::vector<StageTask> stage_tasks(PipelineSchedule schedule, int stage, int stages, int microbatches);

/// Of how many microbatches the stage keeps activations at a time, at most.
int most_in_flight(PipelineSchedule schedule, int stage, int stages, int microbatches);

/// The part of the stages' time that the schedule leaves idle where all stages take the same time and
/// transfers none: (stages - 1) / (microbatches + stages - 1), and for sequential (stages - 1) / stages.
/// At least one of either.
double least_bubble(PipelineSchedule schedule, int stages, int microbatches);

/// How long the parts of a pipeline take, for one microbatch.
struct PipelineTimes {
  struct Stage {
    double forward = 0, backward = 0;  // seconds
  };
  std::vector<Stage> stages;
  /// Seconds of a copy between a stage and the next one, either way; one less than stages, or empty where
  /// copies take no time. Neither stage waits for the copy but by waiting for what is copied.
  std::vector<double> transfers;
};

/// When each stage does what, in seconds from the first task on.
struct PipelineTimeline {
  struct Entry {
    StageTask task;
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Entry>> stages;

  double makespan() const;
  double busy(size_t stage) const;
  /// The part of the stages' time in which they wait.
  double bubble() const;
};

/// Runs the stages' tasks, which are in the order in which each stage does them. A task begins when the one
/// before it is done and its input is there: for a forward, that of the stage before; for a backward, that of
/// the stage after and its own forward. Throws Error where the stages wait for each other for ever.
PipelineTimeline simulate(std::span<const std::vector<StageTask>> tasks, const PipelineTimes& times);
PipelineTimeline simulate(PipelineSchedule schedule, int microbatches, const PipelineTimes& times);

}  // namespace dtrain
