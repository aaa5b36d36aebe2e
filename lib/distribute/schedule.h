// Pipeline schedules: the order in which stages process microbatches, and the resulting times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dtrain {

/// The order in which the stages of a pipeline process a batch. The batch is divided into `microbatches`
/// microbatches, and each of them passes through `stages` stages. In every schedule, each stage runs the
/// backward passes in the order of the microbatches. Gradients are therefore summed in the same order as on a
/// single device.
enum class PipelineSchedule {
  sequential,   // both passes of a microbatch, then the next microbatch: only one stage computes at a time
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

/// Returns the tasks of a stage in execution order: forward and backward of each microbatch. In the GPipe
/// paper, the order of the backward passes is reversed, which takes the same time and memory.
std::vector<StageTask> stage_tasks(PipelineSchedule schedule, int stage, int stages, int microbatches);

/// Returns the maximum number of microbatches whose activations the stage keeps at the same time.
int most_in_flight(PipelineSchedule schedule, int stage, int stages, int microbatches);

/// Returns the fraction of time in which the stages are idle, if all stages take the same time and copies
/// take no time. The fraction is (stages - 1) / (microbatches + stages - 1), or (stages - 1) / stages for the
/// schedule `sequential`. `stages` and `microbatches` must be at least 1.
double least_bubble(PipelineSchedule schedule, int stages, int microbatches);

/// Times of a pipeline's stages and copies, for one microbatch.
struct PipelineTimes {
  struct Stage {
    double forward = 0, backward = 0;  // seconds
  };
  std::vector<Stage> stages;
  /// Time, in seconds, of a copy between each stage and the next one, in either direction. The vector has one
  /// element fewer than `stages`, or it is empty if copies take no time. Copies overlap with computation: a
  /// stage waits only for the copy that it reads.
  std::vector<double> transfers;
};

/// The tasks of each stage with their start and end. Times are in seconds from the start of the first task.
struct PipelineTimeline {
  struct Entry {
    StageTask task;
    double begin = 0, end = 0;
  };
  std::vector<std::vector<Entry>> stages;

  /// Returns the end of the last task, in seconds.
  double makespan() const;
  /// Returns the total time of the stage's tasks, in seconds.
  double busy(size_t stage) const;
  /// Returns the fraction of time in which the stages are idle.
  double bubble() const;
};

/// Simulates the tasks of all stages. The tasks of each stage must be in execution order. A task starts when
/// the previous task of the stage has ended and the task's input is available. The input of a forward task is
/// the output of the previous stage. The input of a backward task is the gradient from the next stage, and
/// the forward task of the same stage must have ended. Throws Error if the stages deadlock.
PipelineTimeline simulate(std::span<const std::vector<StageTask>> tasks, const PipelineTimes& times);
PipelineTimeline simulate(PipelineSchedule schedule, int microbatches, const PipelineTimes& times);

}  // namespace dtrain
