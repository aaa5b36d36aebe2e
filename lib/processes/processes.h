// Connects the processes of a run, which a launcher has started, by MPI and by the control channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "processes/control.h"
#include "processes/interfaces.h"
#include "processes/launch.h"
#include "processes/machine.h"
#include "processes/mpi_transport.h"
#include "processes/transport.h"

namespace dtrain {

/// Thrown in processes other than process 0 for an error that all processes have found. Only process 0 prints
/// such an error.
class ReportedByProcess0 : public UserError {
 public:
  using UserError::UserError;
};

/// Connects this process with the other processes of the run, by MPI and by the control channel.
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
  /// These functions return the rank of this process among the processes on its machine, and the number of
  /// processes on its machine.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  /// Returns the name and version of the MPI library, such as "Open MPI 4.1.4".
  const std::string& mpi_version() const { return mpi_version_; }

  Transport& transport() { return transport_; }
  ControlChannel& control() { return *control_; }

  // All processes must call the following functions (broadcast() to barrier()), in the same order. The
  // functions use the tags of the transport from kFirstTag on. After transport().abort(), they throw Error.
  static constexpr int kFirstTag = 32000;
  /// Returns the bytes that process 0 passed.
  std::string broadcast(const std::string& mine);
  /// Returns the bytes of all processes, by rank, in process 0; an empty list in the others.
  std::vector<std::string> gather(const std::string& mine);
  /// Returns the texts of all processes, by rank, in every process.
  std::vector<std::string> all_gather(const std::string& mine);
  /// Waits until all processes have called barrier().
  void barrier();

  /// Checks that all processes have the same facts. `facts`: the facts of each process, by rank, as the text
  /// of a JSON object (see processes/agreement.h). If facts differ, throws UserError with all differences in
  /// process 0, and ReportedByProcess0 in the other processes.
  void check_agreement(const std::vector<std::string>& facts) const;

  /// Ends the communication after success: waits for the other processes, and finalizes MPI. Returns false if
  /// another process has failed in the meantime. If MPI_Finalize does not return within 10 seconds, ends the
  /// process with `exit_code`.
  bool finish(int exit_code);
  /// Ends this process within two seconds, and makes the launcher end all other processes, including
  /// processes that do not respond.
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

/// Waits for a transfer: polls without pause first, then with pauses, to leave the core to computing threads.
void wait_for(Transport& transport, Transport::Request request);

/// Returns the processes of the launch; null for a single process, which needs no MPI library. The control
/// channel uses the chosen network (processes/interfaces.h) between machines. Throws UserError if no MPI
/// library suits the launcher, if MPI supports too few threads, if MPI does not connect the processes, or if
/// the control channel cannot be connected.
std::unique_ptr<Processes> connect_processes(const Launch& launch, const ChosenNetwork& network = {});

}  // namespace dtrain
