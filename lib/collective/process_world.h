// The World of a run of several processes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collective/message_tags.h"
#include "collective/messenger.h"
#include "collective/process_exchanges.h"
#include "collective/world.h"
#include "processes/transport.h"

namespace dtrain {

/// Communicates with the other processes by messages of a transport. No other object may use the transport.
class ProcessWorld final : public World {
 public:
  /// Functions that communicate with the other processes without the transport. Each of them may be null.
  /// They may be called on any thread, and must not throw.
  struct Hooks {
    /// Tells the other processes that this process has failed, and why. Called at most once.
    std::function<void(const std::string& why, bool is_user_error)> abort = nullptr;
    std::function<void(double seconds)> set_peer_timeout = nullptr;
    /// Returns why another process has failed, or "" if no process has failed. If `transport_failed` is true,
    /// the transport has reported an error, so another process has probably failed. In this case, the
    /// function may wait up to a second until it knows the reason.
    std::function<std::string(bool transport_failed)> failure_of_other = nullptr;
    std::function<bool()> other_has_failed = nullptr;
    std::function<void(double seconds)> set_hang_limit = nullptr;
    std::function<std::string(const std::string& message)> complete_error = nullptr;
    /// Ends this process after a failure. Called if the transport does not return from a call and still uses
    /// memory that is about to be freed. `why`: the failure, of this process or of another process.
    std::function<void(const std::string& why)> end_process = nullptr;
  };
  /// The transport must outlive the World.
  explicit ProcessWorld(Transport& transport);
  ProcessWorld(Transport& transport, Hooks hooks);
  ~ProcessWorld() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void broadcast(std::span<std::byte> bytes) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::unique_ptr<ProcessGather> make_gather() override;
  std::unique_ptr<ProcessMessage> make_message(int process, int channel) override;
  void sum(const ReplicaRanks& ranks, std::span<const double* const> mine, std::span<double> sums) override;
  std::unique_ptr<BackgroundSum<float>> background_sum_of_floats(const ReplicaRanks& ranks,
                                                                 int64_t n) override;
  std::unique_ptr<BackgroundSum<double>> background_sum_of_doubles(const ReplicaRanks& ranks,
                                                                   int64_t n) override;
  std::unique_ptr<BackgroundSum<float>> background_sum_of_parts(const ReplicaRanks& ranks,
                                                                std::vector<Range> parts) override;
  void sum_parts(const ReplicaRanks& ranks, std::vector<Range> parts, std::span<float* const> sums) override;
  void all_gather_parts(const PartsOfProcesses& parts, std::span<float> values) override;
  void all_gather_parts_in_place(const PartsOfProcesses& parts, std::span<float> values) override;
  void gather_parts(const PartsOfProcesses& parts, std::span<float> values) override;
  double measure_round_trips(int with, int64_t bytes, int rounds) override;
  void abort(const std::string& why, bool is_user_error) noexcept override;
  void set_peer_timeout(double seconds) override;
  std::string failure() const override;
  bool other_has_failed() const noexcept override {
    return hooks_.other_has_failed && hooks_.other_has_failed();
  }
  void set_hang_limit(double seconds) override;
  std::string complete_error(const std::string& message) const override;
  void release() noexcept override { messenger_.release_all(); }

  /// Reports that another process has failed: pending and later calls throw ProcessFailed(why). No effect
  /// after abort(). Safe on any thread; returns at once.
  void interrupt(const std::string& why) noexcept { messenger_.interrupt(why); }

 private:
  template <class T>
  class Sum;
  class Calls;
  class Gather;
  class Message;
  /// The counters of the messages to and from one process over one channel.
  struct Orders {
    MessageOrder sends, receives;
  };
  int take_sum_tag();
  int take_gather_tag();

  const int rank_, size_;
  const Hooks hooks_;
  MessageTags sum_tags_, gather_tags_;
  std::mutex orders_mutex_;  // protects the map itself; its elements are not protected
  /// Indexed by process and channel. References to elements remain valid.
  std::map<std::pair<int, int>, Orders> orders_;
  Messenger messenger_;
  std::unique_ptr<Calls> calls_;
};

}  // namespace dtrain
