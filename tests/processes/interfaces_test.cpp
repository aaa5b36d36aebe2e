// Tests the choice of a network interface.
#include "processes/interfaces.h"

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "processes/rendezvous.h"

using namespace dtrain;

namespace {

const std::vector<InterfaceAddress> kAddresses{
    {"lo", "127.0.0.1", true}, {"lo", "::1", true},   {"eth0", "10.77.3.1"},
    {"eth0", "fd00::2"},       {"eth1", "10.78.0.1"}, {"docker0", "172.17.0.1"},
};

std::vector<std::string> chosen(const std::string& text) {
  std::vector<std::string> addresses;
  for (const InterfaceAddress& one : addresses_in({text}, kAddresses)) addresses.push_back(one.address);
  return addresses;
}

using Texts = std::vector<std::string>;

/// Environment variables that are removed at the end of a test.
class Environment {
 public:
  Environment() { clear(); }
  ~Environment() { clear(); }
  std::string operator[](const char* name) const {
    const char* const value = std::getenv(name);
    return value ? value : "";
  }

 private:
  static void clear() {
    for (const char* name : {"NCCL_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include",
                             "OMPI_MCA_btl_tcp_if_exclude", "MPICH_INTERFACE_HOSTNAME", "MPICH_NETWORK_IFACE",
                             "FI_TCP_IFACE", "FI_SOCKETS_IFACE", "UCX_NET_DEVICES"})
      ::unsetenv(name);
  }
};

}  // namespace

TEST_CASE("an interface is chosen by its name or by a range of addresses") {
  CHECK(chosen("") == Texts{"10.77.3.1", "fd00::2", "10.78.0.1", "172.17.0.1"});
  CHECK(chosen("eth0") == Texts{"10.77.3.1", "fd00::2"});
  CHECK(chosen("lo") == Texts{"127.0.0.1", "::1"});
  CHECK(chosen("10.77.0.0/16") == Texts{"10.77.3.1"});
  CHECK(chosen("10.76.0.0/14") == Texts{"10.77.3.1", "10.78.0.1"});
  CHECK(chosen("10.77.3.1/32") == Texts{"10.77.3.1"});
  CHECK(chosen("fd00::/8") == Texts{"fd00::2"});
  CHECK(chosen("0.0.0.0/0") == Texts{"127.0.0.1", "10.77.3.1", "10.78.0.1", "172.17.0.1"});
}

TEST_CASE("an unknown interface is an error that names those of this machine") {
  CHECK_THROWS_WITH_AS(addresses_in({"eth"}, kAddresses),
                       "--interface: this machine has no network interface 'eth' with an address; its "
                       "interfaces: docker0 (172.17.0.1), eth0 (10.77.3.1, fd00::2), eth1 (10.78.0.1), lo "
                       "(127.0.0.1, ::1)",
                       UserError);
  CHECK_THROWS_WITH_AS(addresses_in({"10.79.0.0/16", "DTRAIN_INTERFACE"}, kAddresses),
                       doctest::Contains("DTRAIN_INTERFACE: no network interface of this machine has an "
                                         "address in 10.79.0.0/16; its interfaces: docker0 "),
                       UserError);
  for (const char* text : {"10.77.0.0/33", "10.77.0.0/", "10.77.0/16", "/8", "fd00::/129", "10.77.0.0/-1",
                           "10.77.0.0/16a", "eth0/16"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(addresses_in({text}, kAddresses),
                         doctest::Contains("expected the name of a network interface or a range of addresses "
                                           "such as 10.77.0.0/16, found '"),
                         UserError);
  }
  CHECK_THROWS_WITH_AS(addresses_in({"eth0"}, {}), doctest::Contains("its interfaces: none with an address"),
                       UserError);
}

TEST_CASE("MPI and NCCL get the chosen interface, unless the user has chosen another one for them") {
  const std::vector<InterfaceAddress> found = addresses_in({"10.76.0.0/14"}, kAddresses);
  {
    const Environment environment;
    set_network_environment({"10.76.0.0/14"}, found, false);
    CHECK(environment["NCCL_SOCKET_IFNAME"] == "=eth0,eth1");
    CHECK(environment["OMPI_MCA_btl_tcp_if_include"] == "10.76.0.0/14");
    CHECK(environment["MPICH_INTERFACE_HOSTNAME"] == "10.77.3.1");
    CHECK(environment["FI_TCP_IFACE"] == "eth0");
    CHECK(environment["FI_SOCKETS_IFACE"] == "eth0");
    CHECK(environment["UCX_NET_DEVICES"] == "eth0,eth1");
  }
  const Environment environment;
  ::setenv("NCCL_SOCKET_IFNAME", "ib", 1);
  ::setenv("OMPI_MCA_btl_tcp_if_exclude", "docker0", 1);
  ::setenv("MPICH_NETWORK_IFACE", "eth1", 1);
  set_network_environment({"10.76.0.0/14"}, found, true);
  CHECK(environment["NCCL_SOCKET_IFNAME"] == "ib");
  CHECK(environment["OMPI_MCA_btl_tcp_if_include"] == "");
  CHECK(environment["MPICH_INTERFACE_HOSTNAME"] == "");
  CHECK(environment["FI_TCP_IFACE"] == "eth0");
  CHECK(environment["UCX_NET_DEVICES"] == "");
}

TEST_CASE("process 0 invites the others to the addresses of the chosen network") {
  const ControlListener listener;
  const auto addresses = [&](const std::string& network) {
    Texts all;
    const Json invitation = Json::parse(listener.invitation({network}));
    for (const Json& one : invitation.at("listeners").items())
      for (const Json& address : one.at("addresses").items()) all.push_back(address.as_string());
    return all;
  };
  CHECK(addresses("127.0.0.0/8") == Texts{"127.0.0.1"});
  for (const std::string& address : addresses("")) CHECK_FALSE(address.starts_with("127."));
  CHECK_THROWS_AS(listener.invitation({"no-such-interface"}), UserError);
}
