#include "processes/interfaces.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <ifaddrs.h>
#include <map>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace dtrain {

namespace {

/// Returns the 4 or 16 bytes of an IP address; none if the text is not an IP address.
std::vector<unsigned char> bytes_of(const std::string& address) {
  std::vector<unsigned char> bytes(sizeof(in6_addr));
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(sizeof(in_addr));
  return ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ? bytes : std::vector<unsigned char>();
}

/// A range of addresses.
struct AddressRange {
  std::vector<unsigned char> bytes;
  int bits = 0;  // number of bits of the prefix

  bool contains(const std::string& address) const {
    const std::vector<unsigned char> other = bytes_of(address);
    if (other.size() != bytes.size()) return false;
    for (int bit = 0; bit < bits; ++bit) {
      const auto byte = static_cast<size_t>(bit / 8);
      if (((bytes[byte] ^ other[byte]) >> (7 - bit % 8)) & 1) return false;
    }
    return true;
  }
};

/// Parses a range of addresses (CIDR); returns nullopt if the text is not a range.
std::optional<AddressRange> parse_range(const std::string& text) {
  const size_t slash = text.find('/');
  AddressRange range{bytes_of(text.substr(0, slash))};
  const char *begin = text.data() + slash + 1, *end = text.data() + text.size();
  const auto [last, error] = std::from_chars(begin, end, range.bits);
  const bool is_number = error == std::errc() && last == end && begin != end;
  const bool fits = range.bits >= 0 && range.bits <= 8 * static_cast<int>(range.bytes.size());
  return range.bytes.empty() || !is_number || !fits ? std::nullopt : std::optional(range);
}

/// Returns a text such as "eth0 (10.77.0.1, fd00::2), lo (127.0.0.1)".
std::string list(const std::vector<InterfaceAddress>& addresses) {
  std::map<std::string, std::vector<std::string>> interfaces;
  for (const InterfaceAddress& one : addresses) interfaces[one.interface].push_back(one.address);
  std::vector<std::string> texts;
  for (const auto& [name, its] : interfaces)
    texts.push_back(fmt::format("{} ({})", name, fmt::join(its, ", ")));
  return texts.empty() ? "none with an address" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP)) continue;
    const int family = one->ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&address)) continue;
      ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    } else if (family == AF_INET) {
      const in_addr& address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
      ::inet_ntop(AF_INET, &address, text.data(), text.size());
    } else {
      continue;
    }
    addresses.push_back({one->ifa_name, text.data(), (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(first);
  return addresses;
}

std::vector<InterfaceAddress> addresses_in(const ChosenNetwork& network,
                                           const std::vector<InterfaceAddress>& addresses) {
  std::vector<InterfaceAddress> found;
  const std::string& text = network.text;
  const bool is_range = text.find('/') != text.npos;
  const std::optional<AddressRange> range = is_range ? parse_range(text) : std::nullopt;
  if (is_range && !range)
    throw UserError(
        fmt::format("{}: expected the name of a network interface or a range of addresses such as "
                    "10.77.0.0/16, found '{}'; this machine's interfaces: {}",
                    network.option, text, list(addresses)));
  std::copy_if(addresses.begin(), addresses.end(), std::back_inserter(found),
               [&](const InterfaceAddress& one) {
                 if (text.empty()) return !one.is_loopback;
                 return range ? range->contains(one.address) : one.interface == text;
               });
  if (!found.empty() || text.empty()) return found;
  const std::string problem =
      is_range ? fmt::format("no network interface of this machine has an address in {}", text)
               : fmt::format("this machine has no network interface '{}' with an address", text);
  throw UserError(fmt::format("{}: {}; its interfaces: {}", network.option, problem, list(addresses)));
}

void set_network_environment(const ChosenNetwork& network, const std::vector<InterfaceAddress>& addresses,
                             bool has_infiniband) {
  std::vector<std::string> names;
  for (const InterfaceAddress& one : addresses)
    if (std::find(names.begin(), names.end(), one.interface) == names.end()) names.push_back(one.interface);
  const std::string all = fmt::format("{}", fmt::join(names, ","));
  const auto set = [](const char* variable, const std::string& value) {
    ::setenv(variable, value.c_str(), 0);
  };
  set("NCCL_SOCKET_IFNAME", "=" + all);  // "=" makes NCCL compare whole names, not their beginnings
  // Open MPI reports an error if both an include list and an exclude list are set.
  if (!std::getenv("OMPI_MCA_btl_tcp_if_exclude")) set("OMPI_MCA_btl_tcp_if_include", network.text);
  if (!std::getenv("MPICH_NETWORK_IFACE") && !std::getenv("MPIR_CVAR_CH3_NETWORK_IFACE"))
    set("MPICH_INTERFACE_HOSTNAME", addresses[0].address);  // MPICH does not accept both variables
  set("FI_TCP_IFACE", names[0]);
  set("FI_SOCKETS_IFACE", names[0]);
  if (!has_infiniband) set("UCX_NET_DEVICES", all);
}

void choose_network(const ChosenNetwork& network) {
  if (network.text.empty()) return;
  std::error_code missing;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", missing);
  set_network_environment(network, addresses_in(network, interface_addresses()),
                          !missing && devices != std::filesystem::directory_iterator());
}

}  // namespace dtrain
