#include "collective/process_world.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

// Tags of messages. The blocking calls of the thread that owns the replicas never overlap, so all of them use
// one tag. All other calls may be made in a different order in each process. Therefore each background sum,
// each ProcessGather and each channel of ProcessMessages has its own tag.
constexpr int kWaitingCalls = 0, kFirstSum = 1, kFirstChannel = 10000,
              kFirstGather = kFirstChannel + World::kChannels,
              kTags = 32000;  // larger tags are for lib/processes
constexpr int kMostSums = kFirstChannel - kFirstSum, kMostGathers = kTags - kFirstGather;

}  // namespace

/// Makes the blocking calls of a ProcessWorld, one at a time. A failure ends a call at once, but the
/// transport may still access the memory of the call's exchange. Therefore exchanges use copies of the data
/// that this object owns, and no call is made after a failure.
class ProcessWorld::Calls {
 public:
  Calls(ProcessWorld& world, int tag) : world_(world), tag_(tag) {}
  ~Calls() {
    if (exchange_) world_.messenger_.release(*exchange_);
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void broadcast(std::span<std::byte> bytes) {
    constexpr size_t kMostAtOnce = size_t{4} << 20;
    for (size_t begin = 0; begin < bytes.size(); begin += kMostAtOnce) {
      const std::span<std::byte> part = bytes.subspan(begin, std::min(kMostAtOnce, bytes.size() - begin));
      world_.messenger_.check();
      received_.assign(part.begin(), part.end());
      run<BroadcastExchange>(received_);
      if (world_.rank() > 0) std::copy(received_.begin(), received_.end(), part.begin());
    }
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    world_.messenger_.check();
    sent_.assign(mine.begin(), mine.end());
    received_.resize(all.size());
    run<AllGatherExchange>(sent_, received_);
    std::copy(received_.begin(), received_.end(), all.begin());
  }

  void exchange_parts(const PartsOfProcesses& parts, std::span<float> values, std::optional<int> to) {
    world_.messenger_.check();
    values_.assign(values.begin(), values.end());
    run<PartsExchange>(parts, values_, to);
    std::copy(values_.begin(), values_.end(), values.begin());
  }

  /// Returns the sum over all replicas. `nodes`: for each of this process's nodes of the tree, the sum over
  /// the node (see BackgroundSum::start()).
  std::span<const double> sum(const ReplicaRanks& ranks, std::vector<std::vector<double>> nodes) {
    world_.messenger_.check();
    nodes_ = std::move(nodes);
    std::vector<double*> sums;
    for (std::vector<double>& node : nodes_) sums.push_back(node.data());
    auto exchange =
        std::make_unique<SumExchange<double>>(ranks, static_cast<int64_t>(nodes_[0].size()), tag_);
    exchange->set(sums);
    run_this(std::move(exchange));
    return nodes_[0];
  }

  /// Constructs the exchange E(tag, args...), runs it, and returns it. The reference remains valid until the
  /// next call.
  template <class E, class... Args>
  E& run(Args&&... args) {
    world_.messenger_.check();
    auto exchange = std::make_unique<E>(tag_, std::forward<Args>(args)...);
    E& running = *exchange;
    run_this(std::move(exchange));
    return running;
  }

  /// `sums`: see World::sum_parts().
  void sum_parts(const ReplicaRanks& ranks, std::vector<Range> parts, std::span<float* const> sums) {
    world_.messenger_.check();
    auto exchange = std::make_unique<SumExchange<float>>(ranks, std::move(parts), tag_);
    exchange->set(sums);
    run_this(std::move(exchange));
  }

 private:
  /// Runs an exchange and waits for it. Destroys the exchange of the previous call. That exchange has
  /// finished, because callers check that nothing has failed before they call this function.
  void run_this(std::unique_ptr<Exchange> exchange) {
    const Waiting waiting(world_);
    exchange_ = std::move(exchange);
    world_.messenger_.start(*exchange_);
    world_.messenger_.wait(*exchange_);
  }

  ProcessWorld& world_;
  const int tag_;
  std::vector<std::byte> sent_, received_;
  std::vector<float> values_;
  std::vector<std::vector<double>> nodes_;
  std::unique_ptr<Exchange> exchange_;  // the exchange that was started last
};

template <class T>
class ProcessWorld::Sum final : public BackgroundSum<T> {
 public:
  /// `size`: the number of elements, or the parts (see SumExchange).
  template <class Size>
  Sum(ProcessWorld& world, const ReplicaRanks& ranks, Size size)
      : world_(world),
        messenger_(world.messenger_),
        tag_(world.take_sum_tag()),
        exchange_(ranks, std::move(size), tag_) {}
  ~Sum() override {
    messenger_.release(exchange_);
    world_.sum_tags_.give_back(tag_);
  }

  void start(std::span<T* const> sums) override {
    exchange_.set(sums);
    messenger_.start(exchange_);
  }
  void wait() override {
    const Waiting waiting(world_);
    messenger_.wait(exchange_);
  }
  size_t bytes() const override { return exchange_.bytes(); }

 private:
  ProcessWorld& world_;
  Messenger& messenger_;
  const int tag_;
  SumExchange<T> exchange_;
};

class ProcessWorld::Message final : public ProcessMessage {
 public:
  Message(ProcessWorld& world, int process, int tag, Orders& orders)
      : world_(world), exchange_(process, tag, orders.sends, orders.receives) {}
  ~Message() override { world_.messenger_.release(exchange_); }

  void send(std::span<const std::byte> bytes, const Event* after) override {
    exchange_.set_sent(bytes, after);
    world_.messenger_.start(exchange_);
  }
  void receive(std::span<std::byte> bytes, const Event* after) override {
    exchange_.set_received(bytes, after);
    world_.messenger_.start(exchange_);
  }
  void wait() override {
    const Waiting waiting(world_);
    world_.messenger_.wait(exchange_);
  }

 private:
  ProcessWorld& world_;
  MessageExchange exchange_;
};

class ProcessWorld::Gather final : public ProcessGather {
 public:
  explicit Gather(ProcessWorld& world)
      : world_(world), tag_(world.take_gather_tag()), calls_(std::make_unique<Calls>(world, tag_)) {}
  ~Gather() override {
    calls_.reset();
    world_.gather_tags_.give_back(tag_);
  }
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    calls_->all_gather(mine, all);
  }

 private:
  ProcessWorld& world_;
  const int tag_;
  std::unique_ptr<Calls> calls_;
};

ProcessWorld::ProcessWorld(Transport& transport) : ProcessWorld(transport, Hooks()) {}

ProcessWorld::ProcessWorld(Transport& transport, Hooks hooks)
    : rank_(transport.rank()),
      size_(transport.size()),
      hooks_(std::move(hooks)),
      sum_tags_(kFirstSum, kFirstChannel),
      gather_tags_(kFirstGather, kTags),
      messenger_(
          transport,
          [this] { return hooks_.failure_of_other ? hooks_.failure_of_other(true) : std::string(); },
          hooks_.end_process),
      calls_(std::make_unique<Calls>(*this, kWaitingCalls)) {}

ProcessWorld::~ProcessWorld() = default;

void ProcessWorld::broadcast(std::span<std::byte> bytes) {
  calls_->broadcast(bytes);
}

void ProcessWorld::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  calls_->all_gather(mine, all);
}

std::unique_ptr<ProcessGather> ProcessWorld::make_gather() {
  return std::make_unique<Gather>(*this);
}

std::unique_ptr<ProcessMessage> ProcessWorld::make_message(int process, int channel) {
  const std::lock_guard lock(orders_mutex_);
  return std::make_unique<Message>(*this, process, kFirstChannel + channel, orders_[{process, channel}]);
}

void ProcessWorld::sum(const ReplicaRanks& ranks, std::span<const double* const> mine,
                       std::span<double> sums) {
  const auto n = static_cast<int64_t>(sums.size());
  const std::vector<Range> nodes = subtrees(ranks.of(rank_), ranks.total());
  std::vector<std::vector<double>> arrays(nodes.size(), std::vector<double>(sums.size()));
  for (size_t node = 0; node < nodes.size(); ++node) {
    const auto first = static_cast<size_t>(nodes[node].begin - ranks.first());
    const auto count = static_cast<size_t>(nodes[node].size());
    SumTree(static_cast<int>(count)).add(mine.subspan(first, count), arrays[node].data(), {0, n});
  }
  const std::span<const double> all = calls_->sum(ranks, std::move(arrays));
  std::copy(all.begin(), all.end(), sums.begin());
}

int ProcessWorld::take_sum_tag() {
  if (const auto tag = sum_tags_.take()) return *tag;
  throw UserError(
      fmt::format("the gradients are divided into more than {} buckets, but the processes of a run have no "
                  "more message tags; increase `bucket_megabytes` of the strategy",
                  kMostSums - 1));
}

int ProcessWorld::take_gather_tag() {
  if (const auto tag = gather_tags_.take()) return *tag;
  throw Error(fmt::format(
      "at most {} layers and strategies can gather values from all processes, but this run has more",
      kMostGathers));
}

std::unique_ptr<BackgroundSum<float>> ProcessWorld::background_sum_of_floats(const ReplicaRanks& ranks,
                                                                             int64_t n) {
  return std::make_unique<Sum<float>>(*this, ranks, n);
}

std::unique_ptr<BackgroundSum<double>> ProcessWorld::background_sum_of_doubles(const ReplicaRanks& ranks,
                                                                               int64_t n) {
  return std::make_unique<Sum<double>>(*this, ranks, n);
}

std::unique_ptr<BackgroundSum<float>> ProcessWorld::background_sum_of_parts(const ReplicaRanks& ranks,
                                                                            std::vector<Range> parts) {
  return std::make_unique<Sum<float>>(*this, ranks, std::move(parts));
}

void ProcessWorld::sum_parts(const ReplicaRanks& ranks, std::vector<Range> parts,
                             std::span<float* const> sums) {
  calls_->sum_parts(ranks, std::move(parts), sums);
}

void ProcessWorld::all_gather_parts(const PartsOfProcesses& parts, std::span<float> values) {
  calls_->exchange_parts(parts, values, std::nullopt);
}

void ProcessWorld::all_gather_parts_in_place(const PartsOfProcesses& parts, std::span<float> values) {
  calls_->run<PartsExchange>(parts, values, std::nullopt);
}

void ProcessWorld::gather_parts(const PartsOfProcesses& parts, std::span<float> values) {
  calls_->exchange_parts(parts, values, 0);
}

double ProcessWorld::measure_round_trips(int with, int64_t bytes, int rounds) {
  return calls_->run<RoundTripsExchange>(with, bytes, rounds).seconds();
}

void ProcessWorld::abort(const std::string& why, bool is_user_error) noexcept {
  if (messenger_.interrupt(why) && hooks_.abort) hooks_.abort(why, is_user_error);
}

/// Returns why a process has failed, or "". Also calls the hook failure_of_other, because the messenger
/// detects the failure of another process only while exchanges run.
std::string ProcessWorld::failure() const {
  std::string why = messenger_.failure();
  if (why.empty() && hooks_.failure_of_other) why = hooks_.failure_of_other(false);
  return why;
}

void ProcessWorld::set_peer_timeout(double seconds) {
  if (hooks_.set_peer_timeout) hooks_.set_peer_timeout(seconds);
}

void ProcessWorld::set_hang_limit(double seconds) {
  if (hooks_.set_hang_limit) hooks_.set_hang_limit(seconds);
}

std::string ProcessWorld::complete_error(const std::string& message) const {
  return hooks_.complete_error ? hooks_.complete_error(message) : message;
}

}  // namespace dtrain
