// Implementations of GradientSync with replicated state: for one replica, in shared memory, by NCCL, and
// through the host.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/gradient_sync.h"
#include "engine/sharded_state.h"
#include "engine/sync_update.h"
#include "engine/whole_state.h"

namespace dtrain {

namespace {

/// One replica: the update follows the computation without communication.
class SingleReplica final : public WholeState {
 public:
  SingleReplica(Worker& worker, const ParameterLayout& layout, const Update& update)
      : WholeState(layout, update, 1), whole_{0, layout.with_gradient()} {
    add_copy(worker);
  }
  std::string_view where() const override { return "in one replica"; }
  bool runs_ahead() const override { return on_gpu(); }

  void complete(Worker& worker) override {
    update_alone(worker, update_, copy(), whole_, worker.own_weights());
    set_gradient(0, worker, worker.gradients(), whole_);
  }

 private:
  Range whole_;
};

/// Several replicas in one memory (the host's or one GPU's): each sums and updates one part for all. Also
/// used for one replica whose other slots hold parts of the gradient.
class SharedMemory final : public WholeState {
 public:
  explicit SharedMemory(const GradientSyncRequest& request)
      : WholeState(request.layout(), request.update, request.workers.size()),
        norm_(request.model, request.slot, request.workers),
        with_gradient_(request.layout().with_gradient()) {
    add_copy(*request.workers[0]);
  }
  std::string_view where() const override { return "in one memory"; }

  void end(Worker& worker, Collective& replicas, Collective& everyone) override {
    const auto [gradient, mine] =
        worker.on_gpu() ? sum_on_device(worker, replicas) : sum_on_host(worker, replicas);
    all_reduce_sums(worker, worker, everyone, update_, norm_, gradient + mine.begin, mine);
    update_part(worker, replicas, update_, copy(), gradient + mine.begin, mine);
    set_gradient(replicas.rank(), worker, gradient, mine);
    worker.context().synchronize();  // other workers read this part in the next step
  }

 private:
  struct Sum {
    float* gradient;
    Range mine;
  };

  Sum sum_on_host(Worker& worker, Collective& member) const {
    return {worker.gradients(), member.reduce_scatter(worker.gradients(), with_gradient_)};
  }

  /// Sums into the buffer of rank 0, in rank order.
  Sum sum_on_device(Worker& worker, Collective& member) const {
    worker.context().synchronize();
    const std::span<float* const> all = member.share_pointers(worker.gradients());
    const Range mine = part_of(with_gradient_, member.rank(), member.size(), 16);
    for (size_t i = 1; i < all.size() && mine.size() > 0; ++i)
      worker.ops().scale_add(all[0] + mine.begin, all[i] + mine.begin, 1.0f, 1.0f, mine.size());
    return {all[0], mine};
  }

  const GradientNorm norm_;
  int64_t with_gradient_;
};

/// One GPU per worker: every worker has all parameters and runs the whole update. NCCL reduces the gradients
/// bucket by bucket during backward.
class NcclAllReduce final : public WholeState {
 public:
  explicit NcclAllReduce(const GradientSyncRequest& request)
      : WholeState(request.layout(), request.update, 1),
        norm_(request.model, request.slot, request.workers),
        whole_{0, request.layout().with_gradient()},
        has_other_slots_(request.has_other_slots()),
        next_(request.workers.size(), 0),
        weights_are_summed_(request.workers.size(), 0) {
    std::vector<Context*> contexts;
    for (Worker* worker : request.workers) {
      add_copy(*worker);
      contexts.push_back(&worker->context());
    }
    const int64_t bucket = std::max<int64_t>(request.bucket_bytes / static_cast<int64_t>(sizeof(float)), 1);
    for (int64_t begin = 0; begin < whole_.end; begin += bucket)
      buckets_.push_back({begin, std::min(begin + bucket, whole_.end)});
    members_ = make_nccl_group(contexts, request.world);
  }
  std::string_view where() const override { return "by NCCL"; }
  bool runs_ahead() const override { return !has_other_slots_; }
  void check() override {
    for (const auto& member : members_) member->check();
  }
  void abort() noexcept override {
    for (const auto& member : members_) member->abort();
  }
  std::string failure() override { return members_[0]->failure(); }

  void ready(Worker& worker, int64_t end) override {
    const auto rank = static_cast<size_t>(worker.rank());
    for (size_t& next = next_[rank]; next < buckets_.size() && buckets_[next].end <= end; ++next)
      members_[rank]->all_reduce(worker.gradients() + buckets_[next].begin, buckets_[next].size());
    if (next_[rank] < buckets_.size() || has_other_slots_ || !update_.is_weighted()) return;
    // Must be enqueued with the reductions, before the update's kernels: their first launch may wait for
    // another GPU's reduction.
    if (std::exchange(weights_are_summed_[rank], 1) != 0) return;
    worker.context().enqueue_copy(worker.weights(), worker.own_weights(), sizeof(double));
    members_[rank]->all_reduce(worker.weights(), 1);
  }

  void complete(Worker& worker) override {
    const auto rank = static_cast<size_t>(worker.rank());
    ready(worker, whole_.end);
    drop_captured(worker);
    members_[rank]->join();
    if (has_other_slots_) return;
    update_alone(worker, update_, copy(rank), whole_, worker.weights());
    if (rank == 0) set_gradient(0, worker, worker.gradients(), whole_);
  }

  void drop_captured(Worker& worker) override {
    const auto rank = static_cast<size_t>(worker.rank());
    next_[rank] = 0;
    weights_are_summed_[rank] = 0;
  }

  /// The norm covers the gradients of all slots. Every replica of the slot has the slot's gradient, so only
  /// rank 0 counts it.
  void end(Worker& worker, Collective& replicas, Collective& everyone) override {
    if (!has_other_slots_) return;
    const Range counted = replicas.rank() == 0 ? whole_ : Range{};
    all_reduce_sums(worker, worker, everyone, update_, norm_, worker.gradients(), counted);
    update_whole(worker, update_, copy(static_cast<size_t>(replicas.rank())), whole_);
    if (replicas.rank() == 0) set_gradient(0, worker, worker.gradients(), whole_);
  }

 private:
  const GradientNorm norm_;
  Range whole_;
  bool has_other_slots_;
  std::vector<Range> buckets_;
  std::vector<size_t> next_;              // next bucket to reduce, by rank
  std::vector<char> weights_are_summed_;  // whether this step has summed the row weights, by rank
  std::vector<std::unique_ptr<DeviceCollective>> members_;
};

/// Any mixture of devices: parameters and optimizer state are in host memory, GPUs copy the parameters before
/// each step, and gradients are summed in host memory. Works on every machine but is slow.
class HostStaged final : public WholeState {
 public:
  explicit HostStaged(const GradientSyncRequest& request)
      : WholeState(request.layout(), request.update, request.workers.size()), hosts_(request.workers.size()) {
    const int core = available_cores().front();
    const std::span<Worker* const> workers = request.workers;
    std::vector<Worker*> on_host = {workers.begin(), workers.end()};
    for (size_t rank = 0; rank < workers.size(); ++rank) {
      if (!workers[rank]->on_gpu()) continue;
      Host& host = hosts_[rank];
      host.worker = std::make_unique<Worker>(static_cast<int>(rank), make_cpu_context({}, {core}, false),
                                             GpuMath{}, layout_);
      host.device = std::make_unique<ParameterMemory>(workers[rank]->ops().compute_type(), layout_);
      on_host[rank] = host.worker.get();
    }
    add_copy(*on_host[0]);
    norm_.emplace(request.model, request.slot, on_host);
  }
  std::string_view where() const override { return "in the host's memory"; }
  std::string advice() const override {
    return nccl_available()
               ? "gradients are summed in the host's memory, which is slow: NCCL needs one GPU per replica"
               : "gradients are summed in the host's memory, which is slow: NCCL was not found (dtrain gpus)";
  }
  const ParameterMemory& memory_of(const Worker& worker) const override {
    const auto& device = host_of(worker).device;
    return device ? *device : copy();
  }
  StateBytes state_bytes(const Worker& worker) const override {
    const auto& device = host_of(worker).device;
    return device ? StateBytes{device->bytes(), 0} : WholeState::state_bytes(worker);
  }
  void allocate_parameters(Worker& worker) override {
    WholeState::allocate_parameters(worker);
    if (const auto& device = host_of(worker).device) device->allocate(worker.ops());
  }
  /// A gradient buffer per GPU replica, and the state unless a CPU worker has it.
  size_t host_bytes() const override {
    const auto gpus =
        std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.worker != nullptr; });
    const StateBytes state = hosts_[0].worker ? WholeState::state_bytes(*hosts_[0].worker) : StateBytes{};
    return static_cast<size_t>(gpus * layout_.with_gradient()) * sizeof(float) + state.parameters +
           state.slots;
  }

  void begin(Worker& worker, bool /*trains*/) override {
    const Host& host = host_of(worker);
    if (!host.device) return;
    worker.context().copy_to_device(host.device->values(), copy().values(),
                                    static_cast<size_t>(layout_.size()) * sizeof(float));
    host.device->refresh_copy(worker.ops());
  }

  void end(Worker& worker, Collective& replicas, Collective& everyone) override {
    const Host& host = host_of(worker);
    Worker& on_host = host.worker ? *host.worker : worker;
    if (host.worker) {
      worker.context().copy_to_host(on_host.gradients(), worker.gradients(),
                                    static_cast<size_t>(layout_.with_gradient()) * sizeof(float));
      worker.context().copy_to_host(on_host.state(), worker.state(), sizeof(StepState));
    }
    const Range mine = replicas.reduce_scatter(on_host.gradients(), layout_.with_gradient());
    all_reduce_sums(on_host, worker, everyone, update_, *norm_, on_host.gradients() + mine.begin, mine);
    update_part(on_host, replicas, update_, copy(), on_host.gradients() + mine.begin, mine);
    set_gradient(replicas.rank(), on_host, on_host.gradients(), mine);
    if (host.worker) worker.context().copy_to_device(worker.state(), on_host.state(), sizeof(StepState));
  }

 private:
  /// Host resources of a GPU's replica; empty for CPU replicas.
  struct Host {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<ParameterMemory> device;
  };
  const Host& host_of(const Worker& worker) const { return hosts_[static_cast<size_t>(worker.rank())]; }

  std::vector<Host> hosts_;
  std::optional<GradientNorm> norm_;  // over the workers on the host
};

bool same_memory(std::span<Worker* const> workers) {
  const DeviceId first = workers[0]->context().device();
  return std::all_of(workers.begin(), workers.end(), [&](Worker* worker) {
    const DeviceId device = worker->context().device();
    return device == first || (device.kind == first.kind && first.kind == DeviceId::Kind::cpu);
  });
}

bool a_gpu_each(std::span<Worker* const> workers) {
  std::vector<int> seen;
  for (Worker* worker : workers) {
    if (!worker->on_gpu()) return false;
    seen.push_back(worker->context().device().index);
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

}  // namespace

std::unique_ptr<GradientSync> make_gradient_sync(const GradientSyncRequest& request) {
  const std::span<Worker* const> workers = request.workers;
  if (request.sharded != ShardLevel::none) return make_sharded_state(request);
  if (workers.size() == 1 && !request.has_other_slots())
    return std::make_unique<SingleReplica>(*workers[0], request.layout(), request.update);
  if (same_memory(workers)) return std::make_unique<SharedMemory>(request);
  if (a_gpu_each(workers) && nccl_available()) return std::make_unique<NcclAllReduce>(request);
  return std::make_unique<HostStaged>(request);
}

}  // namespace dtrain
