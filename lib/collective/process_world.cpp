#include "collective/process_world.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace dtrain {

namespace {

// Tags of messages. Calls of the thread that owns the replicas are never made at the same time, so they share
// one tag. Each background sum and each ProcessGather has its own tag, because threads of different processes
// may make their calls in different orders; so has each channel of ProcessMessages.
constexpr int kWaitingCalls = 0, kFirstSum = 1, kFirstChannel = 10000,
              kFirstGather = kFirstChannel + World::kChannels,
              kTags = 32000;  // the rest is for lib/processes

/// Returns a tag of [first, end), and increments it. Tags are used again after thousands of calls. That would
/// be a mistake only if two running exchanges had the same.
int take_tag(int& next, int first, int end) {
  const int tag = next;
  next = tag + 1 < end ? tag + 1 : first;
  return tag;
}

}  // namespace

template <class T>
class ProcessWorld::Sum final : public BackgroundSum<T> {
 public:
  Sum(ProcessWorld& world, SumExchange<T> exchange)
      : world_(world), messenger_(world.messenger_), exchange_(std::move(exchange)) {}
  ~Sum() override { messenger_.release(exchange_); }

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
  SumExchange<T> exchange_;
};

class ProcessWorld::Message final : public ProcessMessage {
 public:
  Message(ProcessWorld& world, int process, int tag) : world_(world), exchange_(process, tag) {}
  ~Message() override { world_.messenger_.release(exchange_); }

  void send(std::span<const std::byte> bytes) override {
    exchange_.set_sent(bytes);
    world_.messenger_.start(exchange_);
  }
  void receive(std::span<std::byte> bytes) override {
    exchange_.set_received(bytes);
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
  Gather(ProcessWorld& world, int tag) : world_(world), tag_(tag) {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    AllGatherExchange exchange(tag_, mine, all);
    world_.run(exchange);
  }

 private:
  ProcessWorld& world_;
  const int tag_;
};

ProcessWorld::ProcessWorld(Transport& transport) : ProcessWorld(transport, Hooks()) {}

ProcessWorld::ProcessWorld(Transport& transport, Hooks hooks)
    : rank_(transport.rank()),
      size_(transport.size()),
      hooks_(std::move(hooks)),
      next_sum_(kFirstSum),
      next_gather_(kFirstGather),
      messenger_(transport,
                 [this] { return hooks_.failure_of_other ? hooks_.failure_of_other(true) : std::string(); }) {
}

void ProcessWorld::run(Exchange& exchange) {
  const Waiting waiting(*this);
  messenger_.start(exchange);
  messenger_.release(exchange);  // the caller destroys the exchange, also after a failure
  messenger_.wait(exchange);
}

void ProcessWorld::broadcast(std::span<std::byte> bytes) {
  BroadcastExchange exchange(kWaitingCalls, bytes);
  run(exchange);
}

/// Every step makes this call, so it ends at once when another process fails. The exchange may then still
/// run, so this object owns it and its memory; no later call reaches them.
void ProcessWorld::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const Waiting waiting(*this);
  if (const std::string why = messenger_.failure(); !why.empty()) throw ProcessFailed(why);
  sent_.assign(mine.begin(), mine.end());
  received_.resize(all.size());
  gather_ = std::make_unique<AllGatherExchange>(kWaitingCalls, sent_, received_);
  messenger_.start(*gather_);
  messenger_.wait(*gather_);
  std::copy(received_.begin(), received_.end(), all.begin());
}

std::unique_ptr<ProcessGather> ProcessWorld::make_gather() {
  return std::make_unique<Gather>(*this, take_tag(next_gather_, kFirstGather, kTags));
}

std::unique_ptr<ProcessMessage> ProcessWorld::make_message(int process, int channel) {
  return std::make_unique<Message>(*this, process, kFirstChannel + channel);
}

void ProcessWorld::sum(const ReplicaRanks& ranks, std::span<const double* const> mine,
                       std::span<double> sums) {
  const auto n = static_cast<int64_t>(sums.size());
  const std::vector<Range> nodes = subtrees(ranks.of(rank_), ranks.total());
  std::vector<std::vector<double>> others(nodes.size() - 1, std::vector<double>(sums.size()));
  std::vector<double*> arrays{sums.data()};
  for (std::vector<double>& other : others) arrays.push_back(other.data());
  for (size_t node = 0; node < nodes.size(); ++node) {
    const auto first = static_cast<size_t>(nodes[node].begin - ranks.first());
    const auto count = static_cast<size_t>(nodes[node].size());
    SumTree(static_cast<int>(count)).add(mine.subspan(first, count), arrays[node], {0, n});
  }
  SumExchange<double> exchange(ranks, n, kWaitingCalls);
  exchange.set(arrays);
  run(exchange);
}

int ProcessWorld::sum_tag() {
  return take_tag(next_sum_, kFirstSum, kFirstChannel);
}

std::unique_ptr<BackgroundSum<float>> ProcessWorld::background_sum_of_floats(const ReplicaRanks& ranks,
                                                                             int64_t n) {
  return std::make_unique<Sum<float>>(*this, SumExchange<float>(ranks, n, sum_tag()));
}

std::unique_ptr<BackgroundSum<double>> ProcessWorld::background_sum_of_doubles(const ReplicaRanks& ranks,
                                                                               int64_t n) {
  return std::make_unique<Sum<double>>(*this, SumExchange<double>(ranks, n, sum_tag()));
}

std::unique_ptr<BackgroundSum<float>> ProcessWorld::background_sum_of_parts(const ReplicaRanks& ranks,
                                                                            std::vector<Range> parts) {
  return std::make_unique<Sum<float>>(*this, SumExchange<float>(ranks, std::move(parts), sum_tag()));
}

void ProcessWorld::sum_parts(const ReplicaRanks& ranks, std::vector<Range> parts,
                             std::span<float* const> sums) {
  SumExchange<float> exchange(ranks, std::move(parts), kWaitingCalls);
  exchange.set(sums);
  run(exchange);
}

void ProcessWorld::all_gather_parts(const PartsOfProcesses& parts, std::span<float> values) {
  PartsExchange exchange(kWaitingCalls, parts, values, std::nullopt);
  run(exchange);
}

void ProcessWorld::gather_parts(const PartsOfProcesses& parts, std::span<float> values) {
  PartsExchange exchange(kWaitingCalls, parts, values, 0);
  run(exchange);
}

double ProcessWorld::measure_round_trips(int with, int64_t bytes, int rounds) {
  RoundTripsExchange exchange(kWaitingCalls, with, bytes, rounds);
  run(exchange);
  return exchange.seconds();
}

void ProcessWorld::abort(const std::string& why) noexcept {
  if (messenger_.interrupt(why) && hooks_.abort) hooks_.abort(why);
}

/// The messenger notices the failure of another process only while messages are under way.
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
