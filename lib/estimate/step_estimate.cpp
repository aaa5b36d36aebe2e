#include "estimate/step_estimate.h"

#include <algorithm>

#include "distribute/branches.h"
#include "distribute/layer_times.h"
#include "distribute/microbatches.h"
#include "estimate/pipeline_estimate.h"
#include "nn/parameters.h"
#include "run/placement.h"

namespace dtrain {

namespace {

/// Returns the speed of one device, in the run's precision. `devices`: number of devices; CPU devices share
/// the machine's cores.
DeviceSpeed speed_of(const Machine& machine, const TrainOptions& train, size_t devices) {
  DeviceSpeed speed = typical_speed(machine.kind);
  speed.link = machine.link;
  if (machine.kind == DeviceId::Kind::cpu) {
    const double cores = static_cast<double>(machine.cores) / static_cast<double>(devices);
    speed.multiply_adds *= cores;
    speed.bytes *= cores;
    return speed;
  }
  // Typical speed-ups of matrix products by tensor cores, for TF32 and for 16-bit types.
  constexpr double kTf32 = 3, k16Bits = 6;
  if (train.precision == Precision::tf32) speed.multiply_adds *= kTf32;
  if (gpu_math(train).type == DType::float32) return speed;
  speed.multiply_adds *= k16Bits;
  speed.bytes *= 2;
  return speed;
}

class StepEstimate {
 public:
  StepEstimate(const RunPlan& plan, int64_t batch_size, const Machine& machine)
      : config_(plan.config),
        placement_(plan.placement),
        batch_size_(batch_size),
        slot_bytes_(workload_of(config_).slot_bytes),
        speed_(speed_of(machine, config_.train, placement_.devices().size())),
        float32_bytes_(speed_.bytes * static_cast<double>(bytes_of(gpu_math(config_.train).type)) /
                       sizeof(float)),
        overlaps_(machine.kind == DeviceId::Kind::gpu),
        layout_(config_.graph, placement_.slots, static_cast<int>(placement_.replicas[0].size())) {}

  double seconds() const {
    if (placement_.schedule != PipelineSchedule::sequential) return pipelined();
    return placement_.slots.empty() ? replicated() : branched();
  }

 private:
  double replicas() const { return static_cast<double>(placement_.replicas.size()); }

  /// Returns the time of a reduce-scatter or of an all-gather in a ring of replicas, in seconds. An
  /// all-reduce takes twice this time.
  double ring(int64_t numbers, size_t bytes) const {
    return (replicas() - 1) / replicas() * static_cast<double>(numbers) * static_cast<double>(bytes) /
           speed_.link;
  }

  /// Returns the time of an update of the weights, in seconds. An update reads the gradients, and it reads
  /// and writes the parameters and the optimizer state.
  double update(double numbers) const {
    const double bytes = 3 * sizeof(float) + 2 * static_cast<double>(slot_bytes_);
    return numbers * bytes / float32_bytes_;
  }

  std::vector<PipelineDevice> devices(const PipelineWork& work) const {
    std::vector<PipelineDevice> all = pipeline_devices(placement_);
    for (PipelineDevice& device : all)
      device.seconds = estimate_layer_seconds(config_.graph, work.samples, speed_);
    return all;
  }

  double together(double computing, double copying) const {
    return overlaps_ ? std::max(computing, copying) : computing + copying;
  }

  /// Returns the time of a step, in seconds, if every replica computes the whole model.
  double replicated() const {
    const PipelineWork work = pipeline_work(config_, placement_, batch_size_);
    const double times = work.rounds;
    const PipelineTimes::Stage computing = pipeline_times(config_.graph, {}, devices(work), work).stages[0];
    double forward = computing.forward * times, backward = computing.backward * times, afterwards = 0;
    const ParameterLayout& whole = layout_.whole();
    const double sum = ring(whole.with_gradient(), sizeof(float));
    const double gather = ring(whole.size(), sizeof(float));
    double parts = replicas();
    switch (placement_.sharded) {
      case ShardLevel::none:
        backward = together(backward, 2 * sum);
        parts = 1;
        break;
      case ShardLevel::optimizer:
        backward = together(backward, sum);
        afterwards = gather;
        break;
      case ShardLevel::gradients:
        backward = together(backward, times * sum);
        afterwards = gather;
        break;
      case ShardLevel::parameters:
        forward = together(forward, times * gather);
        backward = together(backward, times * (gather + sum));
        break;
    }
    return forward + backward + afterwards + update(static_cast<double>(whole.trained()) / parts);
  }

  /// Returns the time, in seconds, in which the slowest slot reduces its gradients and updates its weights.
  double sum_and_update() const {
    double longest = 0;
    for (int slot = 0; slot < layout_.slots(); ++slot) {
      const ParameterLayout& its = layout_.on(slot);
      longest = std::max(
          longest, 2 * ring(its.with_gradient(), sizeof(float)) + update(static_cast<double>(its.trained())));
    }
    return longest;
  }

  /// Returns the time of a step, in seconds, if the layers are on several slots and the microbatches are
  /// processed one after the other.
  double branched() const {
    PipelineWork work = pipeline_work(config_, placement_, batch_size_);
    work.seconds_per_byte = 1 / speed_.link;
    const StageProblem problem = stage_problem(config_.graph, devices(work), work);
    return work.rounds * branches_seconds(problem, placement_.slots) + sum_and_update();
  }

  /// Returns the time of a step, in seconds, if it uses a pipeline schedule.
  double pipelined() const {
    PipelineWork work = pipeline_work(config_, placement_, batch_size_);
    work.seconds_per_byte = 1 / speed_.link;
    const PipelineTimes times = pipeline_times(config_.graph, placement_.slots, devices(work), work);
    return work.rounds * simulate(work.schedule, work.microbatches, times).makespan() + sum_and_update();
  }

  const RunConfig& config_;
  const Placement& placement_;
  const int64_t batch_size_, slot_bytes_;
  const DeviceSpeed speed_;
  const double float32_bytes_;  // bytes per second for arrays that are float32 in every precision
  const bool overlaps_;
  const ModelLayout layout_;
};

}  // namespace

double estimate_step_seconds(const RunPlan& plan, int64_t batch_size, const Machine& machine) {
  return StepEstimate(plan, batch_size, machine).seconds();
}

}  // namespace dtrain
