// Pipeline schedules: the order in which stages process microbatches, and the time that it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// The order of the work on a batch, which passes through `stages` stages as `microbatches` microbatches.
/// With every schedule, each stage runs the backward passes in the order of the microbatches, and so sums
/// gradients in the same order as a single device.
enum class PipelineSchedule {
  sequential,   // both passes of a microbatch before the next microbatch: one stage computes at a time
  gpipe,        // all forward passes, then all backward passes (Huang et al., "GPipe", 2019)
  one_f_one_b,  // 1F1B: each backward pass runs as soon as possible (Narayanan et al.,
                // "Memory-Efficient Pipeline-Parallel DNN Training", 2021: PipeDream-Flush)
};

/// One unit of work of a stage: the forward or backward pass of one microbatch through the stage's layers.
struct StageTask {
  enum class Kind : uint8_t { forward, backward } kind = Kind::forward;
  int microbatch = 0;
  bool operator==(const StageTask&) const = default;
};

/// Returns the tasks of a stage in execution order: each microbatch once forward and once backward.
/// The GPipe paper reverses the order of the backward passes, which takes the same time and memory.
std::vector<StageTask> stage_tasks(PipelineSchedule schedule, int stage, int stages, int microbatches);

/// Returns the maximum number of microbatches whose activations the stage keeps at a time.
int most_in_flight(PipelineSchedule schedule, int stage, int stages, int microbatches);

/// Returns the idle fraction of the stages' time if all stages take the same time and transfers take none:
/// (stages - 1) / (microbatches + stages - 1), or (stages - 1) / stages for sequential. `stages` and
/// `microbatches` must be at least 1.
double least_bubble(PipelineSchedule schedule, int stages, int microbatches);

/// Times of a pipeline's stages and copies, for one microbatch.
struct PipelineTimes {
  struct Stage {
    double forward = 0, backward = 0;  // seconds
  };
  std::vector<Stage> stages;
  /// Seconds of a copy between each stage and the next one, in either direction: one entry less than
  /// `stages`, or empty if copies take no time. Copies overlap with computation; a stage only waits for the
  /// copy of its input.
  std::vector<double> transfers;
};

/// The tasks that each stage runs, with their times in seconds from the start of the first task.
struct PipelineTimeline {
  struct Entry {
    StageTask task;
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Entry>> stages;

  /// Returns the seconds until the last task ends.
  double makespan() const;
  /// Returns the seconds in which the stage computes.
  double busy(size_t stage) const;
  /// Returns the idle fraction of the stages' time.
  double bubble() const;
};

/// Simulates the stages' tasks, given in execution order. A task starts when the stage's previous task is
/// done and its input is available: for a forward, the previous stage's output; for a backward, the next
/// stage's gradient and the stage's own forward. Throws Error if the stages deadlock.
PipelineTimeline simulate(std::span<const std::vector<StageTask>> tasks, const PipelineTimes& times);
PipelineTimeline simulate(PipelineSchedule schedule, int microbatches, const PipelineTimes& times);

}  // namespace dtrain
