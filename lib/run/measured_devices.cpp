#include "run/measured_devices.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "device/gpu_info.h"
#include "distribute/layer_times.h"

namespace dtrain {

namespace {

/// Attaches the context of a device to the calling thread. The destructor detaches the context.
class AttachedContext {
 public:
  explicit AttachedContext(std::unique_ptr<Context> context) : context_(std::move(context)) {
    context_->attach();
  }
  ~AttachedContext() { context_->detach(); }
  AttachedContext(const AttachedContext&) = delete;
  AttachedContext& operator=(const AttachedContext&) = delete;
  Context& operator*() const { return *context_; }

 private:
  std::unique_ptr<Context> context_;
};

/// Returns an estimate of the memory for running the largest layer, in bytes: its parameters, its inputs and
/// outputs, and the gradients of all of these.
uint64_t largest_layer_bytes(const Graph& graph, int64_t samples) {
  double largest = 0;
  for (const GraphNode& node : graph.nodes) {
    double elements = 0;
    for (const ParameterSpec& parameter : node.parameters)
      elements += static_cast<double>(parameter.shape.elements());
    for (const TensorSpec& output : node.outputs)
      elements += static_cast<double>(samples) * static_cast<double>(output.shape.elements());
    for (const ValueRef input : node.inputs)
      elements += static_cast<double>(samples) * static_cast<double>(graph.spec(input).shape.elements());
    largest = std::max(largest, 2 * elements * sizeof(float));
  }
  return static_cast<uint64_t>(largest);
}

class MeasuredDevices {
 public:
  explicit MeasuredDevices(const RunConfig& config) : config_(config) {}

  /// Returns the device with its memory and its measured speed. If the device is a GPU that this process does
  /// not have but another process has, returns it without measurements; typical values are then used for it.
  PipelineDevice measure(DeviceId device, int64_t samples, int sharing) {
    const bool on_gpu = device.kind == DeviceId::Kind::gpu;
    if (on_gpu && device.index >= gpu_presence().count) return {.device = device, .bytes = {}};
    uint64_t bytes = on_gpu ? gpu(device.index).memory_for_run : host_memory().left();
    bytes /= static_cast<uint64_t>(sharing);
    const std::string name = on_gpu ? gpu(device.index).name : "cpu";
    const auto [found, is_new] = seconds_.try_emplace({name, samples});
    if (is_new && largest_layer_bytes(config_.graph, samples) < bytes / 4)
      found->second = layer_seconds(device, samples, sharing);
    return {.device = device, .bytes = static_cast<int64_t>(bytes), .seconds = found->second};
  }

 private:
  const GpuInfo& gpu(int index) {
    if (!gpus_) gpus_ = list_gpus();
    return gpus_->at(static_cast<size_t>(index));
  }

  std::vector<double> layer_seconds(DeviceId device, int64_t samples, int sharing) const {
    const bool on_gpu = device.kind == DeviceId::Kind::gpu;
    std::vector<int> cores = available_cores();
    cores.resize(std::max<size_t>(cores.size() / static_cast<size_t>(sharing), 1));
    const AttachedContext context(on_gpu ? make_gpu_context(device, config_.train.deterministic)
                                         : make_cpu_context(device, std::move(cores), false));
    const std::unique_ptr<Ops> ops =
        on_gpu ? make_cuda_ops(*context, gpu_math(config_.train)) : make_cpu_ops(*context);
    try {
      return measure_layer_seconds(config_.graph, samples, *ops);
    } catch (const Unsupported&) {
      return {};
    }
  }

  const RunConfig& config_;
  std::optional<std::vector<GpuInfo>> gpus_;
  std::map<std::pair<std::string, int64_t>, std::vector<double>> seconds_;
};

}  // namespace

decltype(Workload::measure) measured_devices(const RunConfig& config) {
  return
      [devices = std::make_shared<MeasuredDevices>(config)](DeviceId device, int64_t samples, int sharing) {
        return devices->measure(device, samples, sharing);
      };
}

}  // namespace dtrain
