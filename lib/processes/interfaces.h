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

/// Returns the IP addresses of this machine, except link-local IPv6 addresses (fe80::/10).
std::vector<InterfaceAddress> interface_addresses();

/// A network that the user has chosen for the communication among processes: the name of an interface, or a
/// range of addresses (CIDR) such as "10.77.0.0/16". An empty text chooses nothing.
struct ChosenNetwork {
  std::string text;
  std::string option = "--interface";  // the option or variable that has the text, for messages
};

/// Returns the addresses that belong to the chosen network. If no network is chosen, returns all addresses
/// except loopback addresses. Throws UserError if the chosen network contains none of the addresses, or if
/// the text looks like a range of addresses but is malformed. The message lists the interfaces of this
/// machine.
std::vector<InterfaceAddress> addresses_in(const ChosenNetwork& network,
                                           const std::vector<InterfaceAddress>& addresses);

/// Sets the environment variables that tell Open MPI, MPICH, libfabric, UCX and NCCL which network interfaces
/// to use. Keeps variables that the user has set. `addresses`: the chosen addresses. `has_infiniband`:
/// whether the machine has InfiniBand. If it does, the variable of UCX is not set, because with the variable
/// UCX would not use InfiniBand. Must be called before threads start and before MPI and NCCL are opened.
void set_network_environment(const ChosenNetwork& network, const std::vector<InterfaceAddress>& addresses,
                             bool has_infiniband);

/// Checks the chosen network and sets the environment for it. Throws UserError as addresses_in() does.
void choose_network(const ChosenNetwork& network);

}  // namespace dtrain
