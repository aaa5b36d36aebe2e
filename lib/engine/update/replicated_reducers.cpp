// Gradient reducers for replicated state.
#include <algorithm>
#include <utility>

#include "collective/sum_tree.h"
#include "engine/update/gradient_reducer.h"

namespace dtrain {

namespace {

class SingleReducer final : public GradientReducer {
 public:
  explicit SingleReducer(const ParameterLayout& layout) : whole_{0, layout.with_gradient()} {}
  std::string_view where() const override { return "in one replica"; }
  GradientReduction reduction() const override { return GradientReduction::none; }
  Range share_of(int /*rank*/) const override { return whole_; }
  float* sum_of(Worker& worker) override { return worker.gradients(); }

 private:
  Range whole_;
};

class SharedMemoryReducer final : public GradientReducer {
 public:
  SharedMemoryReducer(std::vector<Range> shares, std::span<Worker* const> workers)
      : workers_(workers.begin(), workers.end()), shares_(std::move(shares)) {}
  std::string_view where() const override { return "in one memory"; }
  GradientReduction reduction() const override { return GradientReduction::reduce_scatter; }
  Range share_of(int rank) const override { return shares_[static_cast<size_t>(rank)]; }
  /// Returns a pointer to the worker's share of the sum. On a GPU, the sum is in the gradients of rank 0; on
  /// a CPU, it is in the worker's own gradients.
  float* sum_of(Worker& worker) override {
    return (worker.on_gpu() ? *workers_[0] : worker).gradients() + share_of(worker.rank()).begin;
  }

  void reduce_scatter(Worker& worker, Collective& replicas) override {
    if (!worker.on_gpu()) {
      replicas.reduce_scatter(worker.gradients(), share_of(worker.rank()));
      return;
    }
    worker.context().synchronize();
    const std::span<float* const> all = replicas.share_pointers(worker.gradients());
    const Range mine = share_of(worker.rank());
    if (mine.size() > 0) add_on_gpu(worker.ops(), all, mine, {0, static_cast<int64_t>(all.size())});
  }

 private:
  /// Sums the elements `mine` of the gradients over the ranks in `node`, in the order of the tree over ranks
  /// (sum_tree.h). The sums replace these elements in the gradient of the node's first rank.
  static void add_on_gpu(Ops& ops, std::span<float* const> gradients, Range mine, Range node) {
    if (node.size() == 1) return;
    const int64_t middle = middle_of(node);
    add_on_gpu(ops, gradients, mine, {node.begin, middle});
    add_on_gpu(ops, gradients, mine, {middle, node.end});
    ops.scale_add(gradients[static_cast<size_t>(node.begin)] + mine.begin,
                  gradients[static_cast<size_t>(middle)] + mine.begin, 1.0f, 1.0f, mine.size());
  }

  std::vector<Worker*> workers_;
  std::vector<Range> shares_;  // indexed by rank
};

class NcclReducer final : public GradientReducer {
 public:
  NcclReducer(const ParameterLayout& layout, std::span<Worker* const> workers, World& world, bool trains)
      : whole_{0, layout.with_gradient()} {
    if (trains) join_nccl(workers, world);
  }
  std::string_view where() const override { return "by NCCL"; }
  GradientReduction reduction() const override { return GradientReduction::all_reduce; }
  Range share_of(int /*rank*/) const override { return whole_; }
  float* sum_of(Worker& worker) override { return worker.gradients(); }

  void all_reduce(Worker& worker, Range range) override {
    nccl(worker).all_reduce(worker.gradients() + range.begin, range.size());
  }
  /// The reduction of the row weights must be enqueued together with the other reductions, before the kernels
  /// of the update. The reason is that the first launch of a kernel may wait for another GPU's reduction.
  void all_reduce_row_weights(Worker& worker) override {
    worker.context().enqueue_copy(worker.weights(), worker.row_weights(), sizeof(double));
    nccl(worker).all_reduce(worker.weights(), 1);
  }
  void join(Worker& worker, Collective&) override { nccl(worker).join(); }

 private:
  Range whole_;
};

class StagedReducer final : public GradientReducer {
 public:
  StagedReducer(const ParameterLayout& layout, std::vector<Range> shares, std::span<Worker* const> workers,
                std::span<Worker* const> on_host)
      : on_host_(on_host.begin(), on_host.end()),
        shares_(std::move(shares)),
        with_gradient_(layout.with_gradient()) {
    for (size_t rank = 0; rank < workers.size(); ++rank) gpus_ += workers[rank]->on_gpu() ? 1 : 0;
  }
  std::string_view where() const override { return "in the host's memory"; }
  GradientReduction reduction() const override { return GradientReduction::reduce_scatter; }
  Range share_of(int rank) const override { return shares_[static_cast<size_t>(rank)]; }
  float* sum_of(Worker& worker) override {
    return host_of(worker).gradients() + share_of(worker.rank()).begin;
  }
  /// Returns the bytes of the gradient buffers in host memory. There is one buffer for each GPU.
  size_t host_bytes() const override { return gpus_ * whole_bytes(); }

  void reduce_scatter(Worker& worker, Collective& replicas) override {
    Worker& host = host_of(worker);
    if (worker.on_gpu()) {
      worker.context().copy_to_host(host.gradients(), worker.gradients(), whole_bytes());
      worker.context().copy_to_host(host.state(), worker.state(), sizeof(StepState));
    }
    replicas.reduce_scatter(host.gradients(), share_of(worker.rank()));
  }

 private:
  size_t whole_bytes() const { return bytes_of_floats(with_gradient_); }
  Worker& host_of(const Worker& worker) const { return *on_host_[static_cast<size_t>(worker.rank())]; }

  std::vector<Worker*> on_host_;
  std::vector<Range> shares_;  // indexed by rank
  int64_t with_gradient_;
  size_t gpus_ = 0;
};

}  // namespace

std::unique_ptr<GradientReducer> make_single_reducer(const ParameterLayout& layout) {
  return std::make_unique<SingleReducer>(layout);
}

std::unique_ptr<GradientReducer> make_shared_memory_reducer(std::vector<Range> shares,
                                                            std::span<Worker* const> workers) {
  return std::make_unique<SharedMemoryReducer>(std::move(shares), workers);
}

std::unique_ptr<GradientReducer> make_nccl_reducer(const ParameterLayout& layout,
                                                   std::span<Worker* const> workers, World& world,
                                                   bool trains) {
  return std::make_unique<NcclReducer>(layout, workers, world, trains);
}

std::unique_ptr<GradientReducer> make_staged_reducer(const ParameterLayout& layout, std::vector<Range> shares,
                                                     std::span<Worker* const> workers,
                                                     std::span<Worker* const> on_host) {
  return std::make_unique<StagedReducer>(layout, std::move(shares), workers, on_host);
}

}  // namespace dtrain
