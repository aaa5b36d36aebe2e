// Makes the connections of the control channel: one from each process to process 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "processes/connection.h"
#include "processes/interfaces.h"

namespace dtrain {

/// Accepts the connections in process 0. Listens on all addresses of the machine, because process 0 cannot
/// know which of its addresses the other processes can reach.
class ControlListener {
 public:
  /// Throws Error if the process cannot listen.
  ControlListener();

  /// Returns JSON for the other processes: the addresses in the chosen network, and a random token that shows
  /// that a connection comes from this run. Throws UserError if this machine is not in the network.
  std::string invitation(const ChosenNetwork& network = {}) const;
  /// Waits for a connection from each of the processes 1 to size - 1, and returns the connections in this
  /// order. For a process that did not connect in time, the list contains a Connection that is not open.
  std::vector<Connection> accept(int size, std::chrono::duration<double> limit);

 private:
  struct Open {
    Socket socket;
    bool ipv6 = false;
    uint16_t port = 0;
  };
  std::vector<Open> listeners_;
  std::string token_;
};

/// Connects this process, which is not process 0, to process 0: tries all addresses in the invitation at
/// once, and returns the first connection that process 0 answers. If process 0 does not answer within the
/// time limit, returns a Connection that is not open, and `problem` lists the addresses and why each attempt
/// failed.
Connection connect_to_listener(const std::string& invitation, int rank, std::chrono::duration<double> limit,
                               std::string& problem);

}  // namespace dtrain
