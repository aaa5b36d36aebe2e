// The replicas of one process: they read each other's memory. The reference that other implementations are
// held against.
#include <algorithm>

#include "collective/collective.h"
#include "collective/gate.h"

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
  Group(int size, bool spin) : gate(size, spin), floats(size), doubles(size) {}
  Gate gate;
  std::vector<float*> floats;  // what each member brought to the call that is under way
  std::vector<std::span<double>> doubles;
};

class LocalCollective final : public Collective {
 public:
  LocalCollective(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->floats.size()); }
  void barrier() override { group_->gate.arrive_and_wait(); }
  void abort() noexcept override { group_->gate.abort(); }

  void all_reduce(std::span<double> values) override {
    group_->doubles[rank_] = values;
    barrier();
    sums_.assign(values.size(), 0.0);
    for (const auto& part : group_->doubles)
      for (size_t i = 0; i < values.size(); ++i) sums_[i] += part[i];
    barrier();  // nobody overwrites what another still reads
    std::copy(sums_.begin(), sums_.end(), values.begin());
  }

  Range reduce_scatter(float* data, int64_t n) override {
    const Range range = part_of(n, rank_, size(), 16);
    if (size() == 1) return range;
    group_->floats[rank_] = data;
    barrier();
    // Blocks small enough to stay in the first-level cache while each member's part is added in turn.
    constexpr int64_t kBlock = 2048;
    for (int64_t begin = range.begin; begin < range.end; begin += kBlock)
      add_block(data, begin, std::min(begin + kBlock, range.end));
    return range;
  }

 private:
  void add_block(float* data, int64_t begin, int64_t end) {
    if (size() == 2) {
      const float *first = group_->floats[0], *second = group_->floats[1];
      for (int64_t i = begin; i < end; ++i) data[i] = first[i] + second[i];
      return;
    }
    float sums[2048];  // `data` is one of the parts, still to be added
    const int64_t n = end - begin;
    std::copy_n(group_->floats[0] + begin, n, sums);
    for (int member = 1; member < size(); ++member) {
      const float* part = group_->floats[member] + begin;
      for (int64_t i = 0; i < n; ++i) sums[i] += part[i];
    }
    std::copy_n(sums, n, data + begin);
  }

  std::shared_ptr<Group> group_;
  int rank_;
  std::vector<double> sums_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_local_group(int size, bool spin) {
  auto group = std::make_shared<Group>(size, spin);
  std::vector<std::unique_ptr<Collective>> members;
  for (int rank = 0; rank < size; ++rank) members.push_back(std::make_unique<LocalCollective>(group, rank));
  return members;
}

}  // namespace dtrain
