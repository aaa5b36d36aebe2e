#include "collective/world.h"

#include <algorithm>
#include <stdexcept>

#include "collective/sum_tree.h"

namespace dtrain {

ExitDeadline::Ending World::end_with_error(const std::string& why, std::chrono::duration<double> limit) {
  ExitDeadline::Ending ending{.limit = limit};
  if (rank() == 0) ending.message = "error: " + complete_error(why) + "\n";
  if (size() > 1) ending.tell_others = [this, why] { abort(why, false); };
  return ending;
}

std::string World::broadcast_text(const std::string& text) {
  auto bytes = static_cast<int64_t>(text.size());
  broadcast(std::as_writable_bytes(std::span(&bytes, 1)));
  std::string received = text;
  received.resize(static_cast<size_t>(bytes));
  broadcast(std::as_writable_bytes(std::span(received)));
  return received;
}

std::vector<std::string> World::all_gather_texts(const std::string& mine) {
  const auto bytes = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(static_cast<size_t>(size()));
  all_gather(std::as_bytes(std::span(&bytes, 1)), std::as_writable_bytes(std::span(sizes)));
  const auto longest = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string padded = mine;
  padded.resize(longest);
  std::string all(longest * sizes.size(), '\0');
  all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (size_t i = 0; i < sizes.size(); ++i)
    texts.push_back(all.substr(i * longest, static_cast<size_t>(sizes[i])));
  return texts;
}

void World::all_reduce_max(std::span<int64_t> values) {
  std::vector<int64_t> all(values.size() * static_cast<size_t>(size()));
  all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  for (size_t i = 0; i < all.size(); ++i)
    values[i % values.size()] = std::max(values[i % values.size()], all[i]);
}

bool World::any(bool mine) {
  int64_t value = mine ? 1 : 0;
  all_reduce_max({&value, 1});
  return value != 0;
}

ReplicaRanks World::replica_ranks(int count) {
  ReplicaRanks ranks{rank(), std::vector<int>(static_cast<size_t>(size()))};
  all_gather(std::as_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(ranks.counts)));
  return ranks;
}

namespace {

/// The background sum of a run with a single process. It does nothing, because the array passed to start()
/// already has the sum over all replicas.
template <class T>
class SumOfOneProcess final : public BackgroundSum<T> {
 public:
  void start(std::span<T* const>) override {}
  void wait() override {}
  size_t bytes() const override { return 0; }
};

void copy_of_one_process(std::span<const std::byte> mine, std::span<std::byte> all) {
  std::copy(mine.begin(), mine.end(), all.begin());
}

class GatherOfOneProcess final : public ProcessGather {
 public:
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    copy_of_one_process(mine, all);
  }
};

class SingleProcess final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte>) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    copy_of_one_process(mine, all);
  }
  std::unique_ptr<ProcessGather> make_gather() override { return std::make_unique<GatherOfOneProcess>(); }
  std::unique_ptr<ProcessMessage> make_message(int, int) override {
    throw std::logic_error("there is no other process to exchange messages with");
  }
  void sum(const ReplicaRanks& ranks, std::span<const double* const> mine, std::span<double> sums) override {
    SumTree(ranks.total()).add(mine, sums.data(), {0, static_cast<int64_t>(sums.size())});
  }
  std::unique_ptr<BackgroundSum<float>> background_sum_of_floats(const ReplicaRanks&, int64_t) override {
    return std::make_unique<SumOfOneProcess<float>>();
  }
  std::unique_ptr<BackgroundSum<double>> background_sum_of_doubles(const ReplicaRanks&, int64_t) override {
    return std::make_unique<SumOfOneProcess<double>>();
  }
  std::unique_ptr<BackgroundSum<float>> background_sum_of_parts(const ReplicaRanks&,
                                                                std::vector<Range>) override {
    return std::make_unique<SumOfOneProcess<float>>();
  }
  void sum_parts(const ReplicaRanks&, std::vector<Range>, std::span<float* const>) override {}
  void all_gather_parts(const PartsOfProcesses&, std::span<float>) override {}
  void all_gather_parts_in_place(const PartsOfProcesses&, std::span<float>) override {}
  void gather_parts(const PartsOfProcesses&, std::span<float>) override {}
  double measure_round_trips(int, int64_t, int) override {
    throw std::logic_error("a single process has no links");
  }
  void abort(const std::string&, bool) noexcept override {}
  std::string failure() const override { return ""; }
};

}  // namespace

World& single_process() {
  static SingleProcess world;
  return world;
}

}  // namespace dtrain
