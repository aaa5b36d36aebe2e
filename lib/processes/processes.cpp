#include "processes/processes.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/threads.h"
#include "processes/agreement.h"
#include "processes/backoff.h"
#include "processes/mpi_library.h"
#include "processes/rendezvous.h"

namespace dtrain {

namespace {

constexpr int kSizeTag = Processes::kFirstTag, kBytesTag = Processes::kFirstTag + 1;

/// Maximum time for connecting the control channel.
constexpr std::chrono::seconds kConnectLimit(30);

/// Ends this process if the processes are not connected within a time limit. The limit is necessary because a
/// process cannot detect the death of another process before they are connected, so MPI might wait for it
/// forever.
class ConnectDeadline {
 public:
  /// `name`: the name of this process.
  ConnectDeadline(int rank, const std::string& name)
      : thread_(start_thread("connecting the processes", [this, rank, name] { wait(rank, name); })) {}
  ~ConnectDeadline() {
    {
      const std::lock_guard lock(mutex_);
      connected_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ConnectDeadline(const ConnectDeadline&) = delete;
  ConnectDeadline& operator=(const ConnectDeadline&) = delete;

 private:
  /// Waits until the processes are connected. After the time limit, process 0 prints an error and ends. If
  /// process 0 has died or is stopped, it cannot print the error, so process 1 prints the error three seconds
  /// later. (After process 0 has printed the error and ended, the launcher ends process 1 before that time.)
  void wait(int rank, const std::string& name) {
    const std::chrono::seconds limit = kConnectLimit + std::chrono::seconds(3);
    std::unique_lock lock(mutex_);
    const auto is_connected = [this] { return connected_; };
    if (changed_.wait_for(lock, limit + std::chrono::seconds(rank > 0 ? 3 : 0), is_connected)) return;
    if (rank <= 1)
      fmt::print(stderr,
                 "error: {}: the processes were not connected within {} seconds after MPI_Init. Either one "
                 "of the processes has ended or is stopped, or the network does not transfer the messages of "
                 "MPI (this happened before the first step)\n",
                 name, limit.count());
    ::_exit(1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  std::thread thread_;
};

/// Starts a thread that ends the process after the time `limit`, if the process has not ended before.
void end_after(std::chrono::seconds limit, int exit_code) {
  std::thread([limit, exit_code] {
    std::this_thread::sleep_for(limit);
    ::_exit(exit_code);
  }).detach();
}

/// Throws an exception for an error that all processes have found. The type of the exception ensures that
/// only process 0 prints the error.
[[noreturn]] void fail_together(int rank, const std::string& message) {
  if (rank == 0) throw UserError(message);
  throw ReportedByProcess0(message);
}

}  // namespace

void wait_for(Transport& transport, Transport::Request request) {
  const Backoff backoff;
  while (!transport.test(request)) backoff.wait();
}

Processes::Processes(const MpiTable& mpi, std::string mpi_version, const ChosenNetwork& network)
    : mpi_(mpi), mpi_version_(std::move(mpi_version)), transport_(mpi) {
  const ConnectDeadline deadline(rank(), process_name(host_name(), rank(), size()));
  check_mpi(mpi_, mpi_.node(&local_rank_, &local_size_), "MPI_Comm_split_type");
  hosts_ = all_gather(host_name());
  connect_control(network);
}

/// Connects the control channel. If this fails in a process, the process tells all other processes through
/// MPI, and all processes throw an error. Otherwise the other processes would wait for the failed one.
void Processes::connect_control(const ChosenNetwork& network) {
  std::vector<Connection> connections;
  std::string problem;
  if (rank() == 0) {
    std::optional<ControlListener> listener;
    try {
      listener.emplace();
    } catch (const Error& error) {
      problem = error.what();
    }
    broadcast(listener ? listener->invitation(network) : "");
    if (listener) connections = listener->accept(size(), kConnectLimit);
  } else if (const std::string invitation = broadcast(""); !invitation.empty()) {
    connections.push_back(connect_to_listener(invitation, rank(), kConnectLimit, problem));
  }
  std::string problems = problem;
  const std::vector<std::string> others = gather(problem);
  for (size_t other = 1; other < others.size(); ++other)
    if (!others[other].empty())
      problems += fmt::format(
          "{}{} cannot reach process 0 on {} by TCP, which is needed for heartbeats and error messages. "
          "Addresses tried: {}. Check whether a firewall blocks these ports, or choose another network with "
          "--interface",
          problems.empty() ? "" : "\n", process_name(hosts_[other], static_cast<int>(other), size()),
          hosts_[0], others[other]);
  problems = broadcast(problems);
  if (!problems.empty()) fail_together(rank(), problems);
  control_ =
      std::make_unique<ControlChannel>(rank(), hosts_, std::move(connections), ControlChannel::Timing{});
}

void Processes::send(int to, const std::string& bytes) {
  const uint64_t size = bytes.size();
  const Transport::Request first = transport_.send(to, kSizeTag, std::as_bytes(std::span(&size, 1)));
  const Transport::Request second = transport_.send(to, kBytesTag, std::as_bytes(std::span(bytes)));
  wait_for(transport_, first);
  wait_for(transport_, second);
}

std::string Processes::receive(int from) {
  uint64_t size = 0;
  wait_for(transport_, transport_.receive(from, kSizeTag, std::as_writable_bytes(std::span(&size, 1))));
  std::string bytes(size, '\0');
  wait_for(transport_, transport_.receive(from, kBytesTag, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

/// Broadcasts along a binomial tree. If 2^k is the lowest set bit of the rank r, process r receives the bytes
/// from process r - 2^k and sends them to the processes r + 2^i for all i < k.
std::string Processes::broadcast(const std::string& mine) {
  int step = 1;
  while (step < size() && !(rank() & step)) step *= 2;
  std::string bytes = rank() == 0 ? mine : receive(rank() - step);
  for (step /= 2; step > 0; step /= 2)
    if (rank() + step < size()) send(rank() + step, bytes);
  return bytes;
}

std::vector<std::string> Processes::gather(const std::string& mine) {
  if (rank() != 0) {
    send(0, mine);
    return {};
  }
  std::vector<std::string> all = {mine};
  for (int other = 1; other < size(); ++other) all.push_back(receive(other));
  return all;
}

std::vector<std::string> Processes::all_gather(const std::string& mine) {
  Json texts = Json::array();
  for (const std::string& text : gather(mine)) texts.push(text);
  texts = Json::parse(broadcast(texts.dump()));
  std::vector<std::string> all;
  for (const Json& text : texts.items()) all.push_back(text.as_string());
  return all;
}

void Processes::barrier() {
  gather("");
  broadcast("");
}

void Processes::check_agreement(const std::vector<std::string>& facts) const {
  std::vector<Json> all;
  for (const std::string& text : facts) all.push_back(Json::parse(text));
  const std::string differences = describe_differences(all, hosts_);
  if (differences.empty()) return;
  fail_together(rank(), fmt::format("the processes of this run differ:\n{}", differences));
}

bool Processes::finish(int exit_code) {
  control_->say_goodbye();
  while (!control_->wait_for_others(std::chrono::seconds(1)))
    if (control_->failure()) break;
  if (control_->failure()) return false;
  end_after(std::chrono::seconds(10), exit_code);
  mpi_.finalize();
  return true;
}

void Processes::end_all(int exit_code) {
  // Two threads may notice a failure at the same time, but only one may call MPI_Abort(), which ends the
  // process.
  static std::atomic<bool> is_ending = false;
  while (is_ending.exchange(true)) std::this_thread::sleep_for(std::chrono::seconds(1));
  end_after(std::chrono::seconds(2), exit_code);
  mpi_.abort(exit_code);
  ::_exit(exit_code);
}

namespace {

[[noreturn]] void refuse(const Launch& launch, const std::string& problem) {
  const std::string message =
      fmt::format("{} started {} processes, but {}. {}", launch.name(), launch.size, problem, launch.cure());
  if (launch.rank > 0) throw ReportedByProcess0(message);
  throw UserError(message);
}

/// Returns true if srun does not provide the addresses of the processes in the protocol that the library
/// needs. This is checked in advance because Open MPI would end the process in MPI_Init with a message that
/// does not help the user. A library that the user has chosen with DTRAIN_MPI_LIBRARY is not checked, because
/// it may support another protocol, such as PMI-1.
bool has_no_addresses(const Launch& launch, const MpiLibrary& library) {
  return launch.launcher == Launch::Launcher::slurm && launch.slurm_plugin != "pmix" &&
         library.family == MpiFamily::open_mpi && !std::getenv("DTRAIN_MPI_LIBRARY");
}

}  // namespace

std::unique_ptr<Processes> connect_processes(const Launch& launch, const ChosenNetwork& network) {
  if (launch.launcher == Launch::Launcher::none) return nullptr;
  MpiLibrary library;
  const MpiTable& mpi = open_mpi_for(launch, library);
  if (has_no_addresses(launch, library))
    refuse(launch,
           fmt::format("{} ({}) can connect the processes only if they are started with srun --mpi=pmix",
                       library.version, library.path));
  bool enough_threads = false;
  check_mpi(mpi, mpi.initialize(&enough_threads), "MPI_Init_thread");
  int rank = 0, size = 1;
  check_mpi(mpi, mpi.world(&rank, &size), "MPI_Comm_size");
  if (size == 1) {
    if (launch.size == 0) {
      mpi.finalize();
      return nullptr;
    }
    refuse(launch,
           fmt::format(
               "the processes are not connected: {} ({}) reports to each process that it is the only one",
               library.version, library.path));
  }
  if (!enough_threads)
    throw UserError(
        fmt::format("{} ({}) does not support MPI_THREAD_SERIALIZED, which dtrain needs; use an MPI library "
                    "that was built with support for threads",
                    library.version, library.path));
  return std::make_unique<Processes>(mpi, library.version, network);
}

}  // namespace dtrain
