// Network interfaces of this machine, and the user's choice among them.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// An IP address of a network interface that is up.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // "10.77.0.1", "fd00::2"
  bool is_loopback = false;

  bool is_ipv6() const { return address.find(':') != address.npos; }
};

/// Returns the addresses of this machine, without those that are valid on one link only (fe80::/10).
std::vector<InterfaceAddress> interface_addresses();

/// A network that the user has chosen for the communication among processes: the name of an interface, or a
/// range of addresses (CIDR), "10.77.0.0/16". An empty text chooses nothing.
struct ChosenNetwork {
  std::string text;
  std::string option = "--interface";  // the option or variable that has the text, for messages
};

/// Returns the addresses that belong to the chosen network; without a choice, all except loopback addresses.
/// Throws UserError, which names this machine's interfaces, if the chosen network has none of the addresses,
/// or if the text looks like a range of addresses but is malformed.
std::vector<InterfaceAddress> addresses_in(const ChosenNetwork& network,
                                           const std::vector<InterfaceAddress>& addresses);

/// Sets the environment variables with which Open MPI, MPICH, libfabric, UCX and NCCL choose interfaces,
/// unless the user has set them. `addresses`: the chosen addresses. UCX's variable would exclude InfiniBand,
/// so it is not set on machines with InfiniBand (`has_infiniband`). To be called before threads start and
/// before MPI and NCCL are opened.
void set_network_environment(const ChosenNetwork& network, const std::vector<InterfaceAddress>& addresses,
                             bool has_infiniband);

/// Checks the chosen network and sets the environment for it. Throws UserError as addresses_in() does.
void choose_network(const ChosenNetwork& network);

}  // namespace dtrain
