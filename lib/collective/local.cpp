// Collective calls among the replicas of one process, which read each other's memory. This is the reference
// implementation.
#include <algorithm>

#include "collective/barrier.h"
#include "collective/collective.h"
#include "collective/sum_tree.h"
#include "device/device.h"

namespace dtrain {

Range part_of(int64_t n, int index, int parts, int64_t grain) {
  const int64_t grains = (n + grain - 1) / grain;
  // The first `longer` parts have one grain more than the other parts.
  const int64_t base = grains / parts, longer = grains % parts;
  const auto start = [&](int64_t i) { return std::min(n, (i * base + std::min(i, longer)) * grain); };
  return {start(index), start(index + 1)};
}

namespace {

struct Group {
  Group(int size, bool spin)
      : barrier(size, spin),
        tree(size),
        floats{Pointers(size), Pointers(size)},
        doubles(size),
        gathered(size) {}
  using Pointers = std::vector<float*>;
  Barrier barrier;
  const SumTree tree;
  // The arguments that the members passed to the current call. The two lists of pointers are used in turn. A
  // member that has begun its next call therefore does not overwrite pointers that another member still
  // reads.
  Pointers floats[2];
  std::vector<double*> doubles;
  std::vector<std::span<const double>> gathered;
};

class LocalCollective final : public Collective {
 public:
  LocalCollective(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->doubles.size()); }
  void barrier() override { group_->barrier.arrive_and_wait(); }
  void abort() noexcept override { group_->barrier.abort(); }

  void all_reduce(std::span<double> values) override {
    group_->doubles[rank_] = values.data();
    barrier();
    sums_.resize(values.size());
    group_->tree.add<double>(group_->doubles, sums_.data(), {0, static_cast<int64_t>(values.size())});
    barrier();  // keeps the arguments valid until all members have read them
    std::copy(sums_.begin(), sums_.end(), values.begin());
  }

  void all_gather(std::span<const double> mine, std::span<double> all) override {
    group_->gathered[rank_] = mine;
    barrier();
    auto next = all.begin();
    for (const auto& part : group_->gathered) next = std::copy(part.begin(), part.end(), next);
    barrier();  // keeps the arguments valid until all members have read them
  }

  void reduce_scatter(float* data, Range mine) override {
    if (size() > 1) group_->tree.add<float>(share_pointers(data), data, mine);
  }

  std::span<float* const> share_pointers(float* mine) override {
    Group::Pointers& pointers = group_->floats[turn_];
    turn_ = 1 - turn_;
    pointers[rank_] = mine;
    barrier();
    return pointers;
  }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  int turn_ = 0;
  std::vector<double> sums_;
};

}  // namespace

void all_gather(Collective& member, Context& context, const double* mine, double* all, int64_t n) {
  const auto count = static_cast<size_t>(n), total = count * static_cast<size_t>(member.size());
  if (context.device().kind == DeviceId::Kind::cpu) return member.all_gather({mine, count}, {all, total});
  std::vector<double> own(count), everybodys(total);
  context.copy_to_host(own.data(), mine, count * sizeof(double));
  member.all_gather(own, everybodys);
  context.copy_to_device(all, everybodys.data(), total * sizeof(double));
}

void all_gather_zeros(Collective& member, int64_t n) {
  const auto count = static_cast<size_t>(n);
  const std::vector<double> zeros(count);
  std::vector<double> all(count * static_cast<size_t>(member.size()));
  member.all_gather(zeros, all);
}

std::vector<std::unique_ptr<Collective>> make_local_group(int size, bool spin) {
  auto group = std::make_shared<Group>(size, spin);
  std::vector<std::unique_ptr<Collective>> members;
  for (int rank = 0; rank < size; ++rank) members.push_back(std::make_unique<LocalCollective>(group, rank));
  return members;
}

}  // namespace dtrain
