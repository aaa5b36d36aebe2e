// Collectives among the replicas of one process, which read each other's memory. The reference for other
// implementations.
#include <algorithm>

#include "collective/barrier.h"
#include "collective/collective.h"
#include "device/device.h"

namespace dtrain {

Range part_of(int64_t n, int index, int parts, int64_t grain) {
  const int64_t grains = (n + grain - 1) / grain;
  const int64_t base = grains / parts,
                longer = grains % parts;  // the first `longer` parts have one grain more
  const auto start = [&](int64_t i) { return std::min(n, (i * base + std::min(i, longer)) * grain); };
  return {start(index), start(index + 1)};
}

namespace {

struct Group {
  Group(int size, bool spin)
      : barrier(size, spin), floats{Pointers(size), Pointers(size)}, doubles(size), gathered(size) {}
  using Pointers = std::vector<float*>;
  Barrier barrier;
  // The members' arguments to the current call. The two pointer lists alternate, so that a member that is one
  // call ahead overwrites nothing that another member still reads.
  Pointers floats[2];
  std::vector<std::span<double>> doubles;
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
    group_->doubles[rank_] = values;
    barrier();
    sums_.assign(values.size(), 0.0);
    for (const auto& part : group_->doubles)
      for (size_t i = 0; i < values.size(); ++i) sums_[i] += part[i];
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

  Range reduce_scatter(float* data, int64_t n) override {
    const Range range = part_of(n, rank_, size(), 16);
    if (size() == 1) return range;
    const std::span<float* const> parts = share_pointers(data);
    // Blocks are small enough to stay in the L1 cache while the members' parts are added.
    constexpr int64_t kBlock = 2048;
    for (int64_t begin = range.begin; begin < range.end; begin += kBlock)
      add_block(parts, data, begin, std::min(begin + kBlock, range.end));
    return range;
  }

  std::span<float* const> share_pointers(float* mine) override {
    Group::Pointers& pointers = group_->floats[turn_];
    turn_ = 1 - turn_;
    pointers[rank_] = mine;
    barrier();
    return pointers;
  }

 private:
  void add_block(std::span<float* const> parts, float* data, int64_t begin, int64_t end) {
    if (parts.size() == 2) {
      const float *first = parts[0], *second = parts[1];
      for (int64_t i = begin; i < end; ++i) data[i] = first[i] + second[i];
      return;
    }
    float sums[2048];  // a separate buffer, because `data` is also one of the inputs
    const int64_t n = end - begin;
    std::copy_n(parts[0] + begin, n, sums);
    for (const float* part : parts.subspan(1))
      for (int64_t i = 0; i < n; ++i) sums[i] += part[begin + i];
    std::copy_n(sums, n, data + begin);
  }

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
