// Sums gradients over the CPU replicas of several processes, with replicated or sharded optimizer state.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "collective/sum_tree.h"
#include "engine/update/gradient_reducer.h"

namespace dtrain {

namespace {

/// Counts the replicas of a process that have completed a stage of a bucket. The counters grow from step to
/// step, because a counter cannot be reset while other replicas may read it.
using Arrivals = std::atomic<int64_t>;

/// Sums gradients bucket by bucket while the backward pass continues. After all replicas of this process have
/// filled a bucket, each replica sums its share of the bucket over the replicas. Then the processes exchange
/// the sums of the bucket. No replica waits for other replicas before join(), because a replica sums its
/// share when it next calls all_reduce(). The sums of a subtree (sum_tree.h) replace the gradients of the
/// subtree's first replica, and the final sums replace the gradients of replica 0. The final sums cover all
/// parameters or, if the state is sharded, the shards of this process.
class ProcessReducer final : public GradientReducer {
 public:
  explicit ProcessReducer(const ProcessReducerRequest& request)
      : store_(request.store),
        slot_(request.slot),
        workers_(request.workers.begin(), request.workers.end()),
        shares_(request.shares),
        bucket_(request.bucket),
        totals_(request.totals),
        turns_(workers_.size()) {
    const ReplicaRanks& ranks = request.ranks;
    World& world = request.world;
    for (const Range& range : reduction_buckets(request.layout.with_gradient(), bucket_))
      buckets_.push_back(std::make_unique<Bucket>(
          range, store_ ? world.background_sum_of_parts(ranks, shards_in(range, world))
                        : world.background_sum_of_floats(ranks, range.size())));
    for (const Range& node : subtrees(ranks.of(ranks.process), ranks.total()))
      nodes_.push_back({static_cast<size_t>(node.begin - ranks.first()), static_cast<size_t>(node.size()),
                        SumTree(static_cast<int>(node.size()))});
  }

  std::string_view where() const override {
    return store_ ? "in parts, over the processes" : "over the processes";
  }
  GradientReduction reduction() const override { return GradientReduction::over_processes; }
  Range share_of(int rank) const override { return shares_[static_cast<size_t>(rank)]; }
  float* sum_of(Worker& worker) override { return workers_[0]->gradients() + share_of(worker.rank()).begin; }

  /// For the first worker, returns the bytes of the arrays from other processes and, in the first slot, of
  /// the totals. Returns 0 for the other workers.
  size_t gradient_bytes(const Worker& worker) const override {
    size_t bytes = slot_ == 0 ? totals_.bytes() : 0;
    for (const auto& bucket : buckets_) bytes += bucket->sum->bytes();
    return worker.rank() == 0 ? bytes : 0;
  }

  void begin(Worker& worker) override {
    Turn& turn = turns_[static_cast<size_t>(worker.rank())];
    turn.arrivals += replicas();
    turn.next = 0;
  }

  void all_reduce(Worker& worker, Range range) override {
    ++buckets_[static_cast<size_t>(range.begin / bucket_)]->filled;
    add_filled(worker);
  }

  void sum_totals(Worker& worker, std::span<const double> totals) override {
    totals_.add(worker.rank(), slot_, totals.data());
  }
  std::span<const double> summed_totals() const override { return totals_.sums(); }

  void join(Worker& worker, Collective& replicas) override {
    replicas.barrier();  // waits until all buckets are filled
    add_filled(worker);
    replicas.barrier();  // waits until all sums were started
    for (const auto& bucket : buckets_) bucket->sum->wait();
    totals_.wait();
    // The sum of the row weights is one of the totals.
    if (const double* const weights = worker.row_weights())
      *worker.weights() = totals_.sum_of(weights, worker.rank(), slot_);
  }

  void gather_updated(Worker& worker, Collective& replicas) override {
    store_->gather_updated(worker, replicas);
  }

 private:
  struct Bucket {
    Bucket(Range floats, std::unique_ptr<BackgroundSum<float>> over_processes)
        : range(floats), sum(std::move(over_processes)) {}
    const Range range;
    const std::unique_ptr<BackgroundSum<float>> sum;
    Arrivals filled{0}, added{0};  // numbers of replicas that have filled the bucket, or added their shares
  };
  /// A subtree of the tree over all replicas; this process adds the gradients of the subtree.
  struct Node {
    size_t first, replicas;  // index of the first replica in this process, and number of replicas
    SumTree tree;
  };
  /// A replica's progress in the current step.
  struct Turn {
    // Value of Bucket::filled and Bucket::added when all replicas of this process have finished this step.
    int64_t arrivals = 0;
    size_t next = 0;  // index of the next bucket whose share this replica adds
  };

  int replicas() const { return static_cast<int>(workers_.size()); }

  /// Returns the part of a bucket that each process updates, as indices into the bucket.
  std::vector<Range> shards_in(Range bucket, const World& world) const {
    std::vector<Range> parts;
    for (int process = 0; process < world.size(); ++process) {
      const Range part = overlap(bucket, store_->trained_of(process));
      parts.push_back(part.size() == 0 ? Range{} : Range{part.begin - bucket.begin, part.end - bucket.begin});
    }
    return parts;
  }

  /// Adds this replica's share of the next buckets, up to the first bucket that some replica has not filled
  /// yet. The last replica that adds its share of a bucket starts the sum over the processes.
  void add_filled(Worker& worker) {
    Turn& turn = turns_[static_cast<size_t>(worker.rank())];
    for (; turn.next < buckets_.size() && buckets_[turn.next]->filled == turn.arrivals; ++turn.next) {
      Bucket& bucket = *buckets_[turn.next];
      const Range share = part_of(bucket.range.size(), worker.rank(), replicas(), 16);
      add_share({bucket.range.begin + share.begin, bucket.range.begin + share.end});
      if (++bucket.added == turn.arrivals) start(bucket);
    }
  }

  void add_share(Range range) {
    for (const Node& node : nodes_) {
      if (node.replicas == 1) continue;
      std::vector<const float*> gradients;
      for (size_t i = 0; i < node.replicas; ++i) gradients.push_back(workers_[node.first + i]->gradients());
      node.tree.add<float>(gradients, workers_[node.first]->gradients(), range);
    }
  }

  void start(Bucket& bucket) {
    std::vector<float*> sums;
    for (const Node& node : nodes_) sums.push_back(workers_[node.first]->gradients() + bucket.range.begin);
    bucket.sum->start(sums);
  }

  const ShardedStore* const store_;
  const int slot_;
  const std::vector<Worker*> workers_;
  const std::vector<Range> shares_;  // indexed by replica of this process: the share that it updates
  const int64_t bucket_;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<Node> nodes_;
  ProcessTotals& totals_;
  std::vector<Turn> turns_;  // indexed by replica; each is used by its own thread
};

}  // namespace

std::unique_ptr<GradientReducer> make_process_reducer(const ProcessReducerRequest& request) {
  return std::make_unique<ProcessReducer>(request);
}

}  // namespace dtrain
