// Exchanges of messages among processes. All processes take part in most of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collective/messenger.h"
#include "collective/sum_tree.h"
#include "collective/world.h"

namespace dtrain {

/// Counters that keep messages in order. They count the messages with one tag to a process, or from a
/// process. A transfer may have to wait for an event, so the transfer of a later message may be ready first.
/// The counters make sure that transfers begin in the order in which the messages were started.
struct MessageOrder {
  uint64_t started = 0;  // messages started; used by the thread that starts messages
  uint64_t begun = 0;    // transfers begun; used by the messenger's thread
};

/// Sends one message to a process, or receives one.
class MessageExchange final : public Exchange {
 public:
  /// `sends` counts all messages with this tag to the process, and `receives` counts all messages with this
  /// tag from it. Both must outlive the exchange.
  MessageExchange(int process, int tag, MessageOrder& sends, MessageOrder& receives)
      : process_(process), tag_(tag), sends_(sends), receives_(receives) {}
  // One of these functions must be called before Messenger::start(). It sets the direction of the message,
  // its bytes, and the event to wait for (null if the transfer may begin at once).
  void set_sent(std::span<const std::byte> bytes, const Event* after) {
    sent_ = bytes;
    set(sends_, after);
  }
  void set_received(std::span<std::byte> bytes, const Event* after) {
    received_ = bytes;
    set(receives_, after);
  }

 private:
  void set(MessageOrder& order, const Event* after) {
    order_ = &order;
    number_ = order.started++;
    after_ = after;
  }
  bool advance(Transport& transport) override;

  const int process_, tag_;
  MessageOrder &sends_, &receives_;
  std::span<const std::byte> sent_;
  std::span<std::byte> received_;
  MessageOrder* order_ = nullptr;  // counts the messages in this message's direction
  uint64_t number_ = 0;            // number of this message in `order_`
  const Event* after_ = nullptr;
  std::optional<Transport::Request> request_;  // set while the transfer is under way
};

/// Copies the bytes of process 0 to all processes, along a binomial tree.
class BroadcastExchange final : public Exchange {
 public:
  BroadcastExchange(int tag, std::span<std::byte> bytes) : tag_(tag), bytes_(bytes) {}

 private:
  bool advance(Transport& transport) override;

  int tag_;
  std::span<std::byte> bytes_;
  enum class Phase { start, receive, send } phase_ = Phase::start;
  Transfers transfers_;
};

/// Fills `all` with the bytes of all processes, by rank.
class AllGatherExchange final : public Exchange {
 public:
  AllGatherExchange(int tag, std::span<const std::byte> mine, std::span<std::byte> all)
      : tag_(tag), mine_(mine), all_(all) {}

 private:
  bool advance(Transport& transport) override;

  int tag_;
  std::span<const std::byte> mine_;
  std::span<std::byte> all_;
  bool started_ = false;
  Transfers transfers_;
};

/// Copies parts of an array from the processes that have these parts to the processes that lack them.
class PartsExchange final : public Exchange {
 public:
  /// `parts`: see World::all_gather_parts(). `to`: the process that receives; nullopt: all processes receive.
  PartsExchange(int tag, PartsOfProcesses parts, std::span<float> values, std::optional<int> to)
      : tag_(tag), parts_(std::move(parts)), values_(values), to_(to) {}

 private:
  bool advance(Transport& transport) override;
  void start(Transport& transport);

  int tag_;
  PartsOfProcesses parts_;
  std::span<float> values_;
  std::optional<int> to_;
  bool started_ = false;
  Transfers transfers_;
};

/// Sends a message to another process and back, several times (World::measure_round_trips()).
class RoundTripsExchange final : public Exchange {
 public:
  RoundTripsExchange(int tag, int with, int64_t bytes, int rounds)
      : tag_(tag), with_(with), rounds_(rounds), bytes_(static_cast<size_t>(bytes)) {}

  /// In the process of lower rank, returns the mean time of a round in seconds, not counting the first round.
  /// In the other process, returns 0.
  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool advance(Transport& transport) override;
  /// Starts the next message. This process alternately sends and receives a message.
  void start_message(Transport& transport);

  int tag_, with_, rounds_;
  std::vector<std::byte> bytes_;
  int messages_ = 0;  // number of messages started
  Transfers transfers_;
  Clock::time_point begin_;
  double seconds_ = 0;
};

/// Sums an array over all replicas. Each process is responsible for one part of the array: it receives this
/// part from all other processes, adds it in the order of the tree, and sends the sum to all other processes.
/// With p processes that have one node of the tree each, a process sends 2 (p - 1) / p times the size of the
/// array. A short array is sent whole to all processes, which needs only one round of messages instead of
/// two.
template <class T>
class SumExchange final : public Exchange {
 public:
  /// `n`: length of the array. `tag`: tag of the messages. No other exchange that runs at the same time may
  /// have this tag.
  SumExchange(const ReplicaRanks& ranks, int64_t n, int tag);
  /// Like the other constructor, but each process receives only the sum of its part of the array,
  /// parts[process].
  SumExchange(const ReplicaRanks& ranks, std::vector<Range> parts, int tag);

  /// Passes the arrays to sum: for each of this process's nodes of the tree, an array with the sum over the
  /// replicas of the node (see BackgroundSum::start()). Must be called before Messenger::start().
  void set(std::span<T* const> sums) { mine_.assign(sums.begin(), sums.end()); }
  /// Returns the size, in bytes, of the memory for data received from other processes.
  size_t bytes() const { return received_floats() * sizeof(T); }

 private:
  /// Largest size of an array, in bytes, that is sent whole to all processes.
  static constexpr size_t kShortBytes = 4096;

  bool advance(Transport& transport) override;
  size_t received_floats() const;
  bool is_short() const { return parts_.empty() && static_cast<size_t>(n_) * sizeof(T) <= kShortBytes; }
  /// Returns the part of the array for which a process is responsible.
  Range part_at(int process) const;
  void send(Transport& transport, int process, const T* array, Range part);
  void receive(Transport& transport, int process, T* array, Range part);
  void exchange_parts(Transport& transport);
  void add_parts();
  void exchange_sums(Transport& transport);
  int processes() const { return static_cast<int>(ranks_.counts.size()); }

  ReplicaRanks ranks_;
  int64_t n_ = 0;
  std::vector<Range> parts_;  // indexed by process; empty if all processes receive the whole sum
  int tag_;
  std::vector<std::vector<Range>> nodes_;  // indexed by process
  SumTree tree_;
  std::vector<T*> mine_;
  /// The data received from other processes: for each node of another process, the part of the node's array
  /// for which this process is responsible. Allocated on first use.
  std::vector<T> received_;
  enum class Phase { start, parts, sums } phase_ = Phase::start;
  Transfers transfers_;
};

}  // namespace dtrain
