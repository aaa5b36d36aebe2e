#include "collective/process_group.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "collective/sum_tree.h"

namespace dtrain {

namespace {

/// The values of all replicas. The member with local rank 0 gathers them.
struct Gathered {
  std::unique_ptr<ProcessGather> gather;
  ReplicaRanks ranks;
  /// rank() of each member, with the members listed process by process. Empty if this
  /// is the order of the ranks.
  std::vector<int> places;
  std::vector<double> own, padded, all;

  size_t place_of(size_t member) const {
    return places.empty() ? member : static_cast<size_t>(places[member]);
  }

  /// Waits for all processes.
  void synchronize() {
    const std::byte mine{};
    std::vector<std::byte> all_marks(ranks.counts.size());
    gather->all_gather({&mine, 1}, all_marks);
  }

  /// Gathers the values of the replicas of all processes. `own` has the values of this process's replicas, n
  /// values each.
  void exchange(size_t n) {
    const auto most = static_cast<size_t>(*std::max_element(ranks.counts.begin(), ranks.counts.end()));
    own.resize(most * n);  // padded, because all_gather() needs equally many values from all processes
    padded.resize(ranks.counts.size() * most * n);
    gather->all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(padded)));
    all.resize(static_cast<size_t>(ranks.total()) * n);
    for (size_t process = 0, member = 0; process < ranks.counts.size(); ++process)
      for (size_t i = 0; i < static_cast<size_t>(ranks.counts[process]); ++i, ++member)
        std::copy_n(padded.begin() + static_cast<std::ptrdiff_t>((process * most + i) * n), n,
                    all.begin() + static_cast<std::ptrdiff_t>(place_of(member) * n));
  }
};

class ProcessCollective final : public Collective {
 public:
  ProcessCollective(Collective& local, std::shared_ptr<Gathered> gathered)
      : local_(local), gathered_(std::move(gathered)) {}

  int rank() const override {
    return static_cast<int>(
        gathered_->place_of(static_cast<size_t>(gathered_->ranks.first() + local_.rank())));
  }
  int size() const override { return gathered_->ranks.total(); }
  void abort() noexcept override { local_.abort(); }

  void barrier() override {
    local_.barrier();
    if (local_.rank() == 0) gathered_->synchronize();
    local_.barrier();
  }

  void all_gather(std::span<const double> mine, std::span<double> all) override {
    std::vector<double> own(mine.size() * static_cast<size_t>(local_.size()));
    local_.all_gather(mine, own);
    if (local_.rank() == 0) {
      gathered_->own = std::move(own);
      gathered_->exchange(mine.size());
    }
    local_.barrier();
    std::copy(gathered_->all.begin(), gathered_->all.end(), all.begin());
    local_.barrier();  // no member may start another call before all members have read the values
  }

  void all_reduce(std::span<double> values) override {
    std::vector<double> all(values.size() * static_cast<size_t>(size()));
    all_gather(values, all);
    std::vector<const double*> parts;
    for (int member = 0; member < size(); ++member)
      parts.push_back(all.data() + static_cast<size_t>(member) * values.size());
    SumTree(size()).add<double>(parts, values.data(), {0, static_cast<int64_t>(values.size())});
  }
  void reduce_scatter(float*, Range) override { reject("reduce_scatter"); }
  std::span<float* const> share_pointers(float*) override { reject("share_pointers"); }

 private:
  [[noreturn]] static void reject(const std::string& call) {
    throw std::logic_error(
        call +
        "() needs memory that all replicas share, but replicas in different processes share no memory");
  }

  Collective& local_;
  std::shared_ptr<Gathered> gathered_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_process_group(const std::vector<Collective*>& local,
                                                            World& world, const ReplicaRanks& ranks,
                                                            std::vector<int> places) {
  const std::shared_ptr<Gathered> gathered(
      new Gathered{world.make_gather(), ranks, std::move(places), {}, {}, {}});
  std::vector<std::unique_ptr<Collective>> members;
  for (Collective* member : local) members.push_back(std::make_unique<ProcessCollective>(*member, gathered));
  return members;
}

}  // namespace dtrain
