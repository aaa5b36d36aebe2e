// The processes of a run: started by a launcher, connected by MPI and by the control channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "processes/control.h"
#include "processes/interfaces.h"
#include "processes/launch.h"
#include "processes/mpi_transport.h"
#include "processes/transport.h"

namespace dtrain {

/// An error that all processes have found and that process 0 reports. It is thrown in the other processes.
class ReportedByProcess0 : public UserError {
 public:
  using UserError::UserError;
};

/// This process and the other processes of the run.
class Processes {
 public:
  /// Connects the processes of the launch. See connect_processes().
  Processes(const MpiTable& mpi, std::string mpi_version, const ChosenNetwork& network);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  /// Returns the names of all processes' machines, by rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// Returns a name such as "node2 (process 1 of 4)".
  std::string name() const { return process_name(hosts_[static_cast<size_t>(rank())], rank(), size()); }
  /// Return this process's rank among the processes of its machine, and the number of these processes.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  /// Returns the name and version of the MPI library, such as "Open MPI 4.1.4".
  const std::string& mpi_version() const { return mpi_version_; }

  Transport& transport() { return transport_; }
  ControlChannel& control() { return *control_; }

  // Every process must make these calls, in the same order. They use the transport's tags from kFirstTag on.
  // They throw Error after transport().abort().
  static constexpr int kFirstTag = 32000;
  /// Returns the bytes that process 0 passed.
  std::string broadcast(const std::string& mine);
  /// Returns the bytes of all processes, by rank, in process 0; an empty list in the others.
  std::vector<std::string> gather(const std::string& mine);
  /// Returns the texts of all processes, by rank, in every process.
  std::vector<std::string> all_gather(const std::string& mine);
  /// Waits until all processes have called it.
  void barrier();

  /// Checks that the facts of all processes, by rank, are the same (texts of JSON, see
  /// processes/agreement.h). If not, throws UserError with all differences on process 0, and
  /// ReportedByProcess0 on the others.
  void check_agreement(const std::vector<std::string>& facts) const;

  /// Ends the communication after success: waits for the others, and finalizes MPI. Returns false if another
  /// process failed meanwhile. If MPI does not return, ends the process with `exit_code` after 10 seconds.
  bool finish(int exit_code);
  /// Ends this process, and makes the launcher end the others, also those that do not respond. This process
  /// ends within two seconds.
  [[noreturn]] void end_all(int exit_code);
  /// Ends the control channel after a failure; must be the last call.
  void close_control() { control_.reset(); }

 private:
  void connect_control(const ChosenNetwork& network);
  void send(int to, const std::string& bytes);
  std::string receive(int from);

  const MpiTable& mpi_;
  std::string mpi_version_;
  MpiTransport transport_;
  std::vector<std::string> hosts_;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::unique_ptr<ControlChannel> control_;
};

/// Returns the name of this machine.
std::string host_name();

/// Waits for a transfer: polls without pause first, then with pauses, to leave the core to computing threads.
void wait_for(Transport& transport, Transport::Request request);

/// Returns the processes of the launch; null for a single process, which needs no MPI library. The control
/// channel uses the chosen network (processes/interfaces.h) between machines. Throws
/// UserError if no MPI library suits the launcher, if MPI supports too few threads, if the processes do not
/// see each other, or if the control channel cannot be connected.
std::unique_ptr<Processes> connect_processes(const Launch& launch, const ChosenNetwork& network = {});

}  // namespace dtrain
