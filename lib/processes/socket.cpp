#include "processes/socket.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "processes/machine.h"

namespace dtrain {

namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// A socket address, as the system calls bind() and connect() take it.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Returns the socket address of an IP address and a port. `text`: the IP address, or nullptr for all
/// addresses of this machine.
Address make_address(bool ipv6, const char* text, uint16_t port) {
  Address address;
  if (ipv6) {
    auto& in = reinterpret_cast<sockaddr_in6&>(address.storage);
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    in.sin6_addr = in6addr_any;
    if (text) ::inet_pton(AF_INET6, text, &in.sin6_addr);
    address.size = sizeof in;
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(address.storage);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = INADDR_ANY;
    if (text) ::inet_pton(AF_INET, text, &in.sin_addr);
    address.size = sizeof in;
  }
  return address;
}

bool is_ipv6(const std::string& address) {
  return address.find(':') != address.npos;
}

/// Disables Nagle's algorithm, which would delay the short messages of the control channel.
void send_at_once(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

void Socket::close() {
  if (is_open()) ::close(std::exchange(descriptor_, -1));
}

std::string Endpoint::text() const {
  return is_ipv6(address) ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

Socket listen_on_all(bool ipv6, uint16_t& port) {
  Socket socket(::socket(ipv6 ? AF_INET6 : AF_INET, kKind, 0));
  if (!socket.is_open() && errno == EAFNOSUPPORT) return socket;
  const auto refuse = [&] {
    throw Error(fmt::format("cannot listen for other processes: {}", reason(errno)));
  };
  if (!socket.is_open()) refuse();
  const int on = 1;
  if (ipv6) ::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  Address address = make_address(ipv6, nullptr, 0);
  if (::bind(socket.descriptor(), address.data(), address.size) != 0) {
    if (ipv6 && errno == EADDRNOTAVAIL) return Socket();
    refuse();
  }
  if (::listen(socket.descriptor(), SOMAXCONN) != 0) refuse();
  if (::getsockname(socket.descriptor(), address.data(), &address.size) != 0) refuse();
  port = ntohs(ipv6 ? reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port
                    : reinterpret_cast<sockaddr_in&>(address.storage).sin_port);
  return socket;
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) send_at_once(socket);
  return socket;
}

Socket start_to_connect(const Endpoint& endpoint, std::string& problem) {
  const bool ipv6 = is_ipv6(endpoint.address);
  Socket socket(::socket(ipv6 ? AF_INET6 : AF_INET, kKind, 0));
  if (!socket.is_open()) {
    problem = reason(errno);
    return socket;
  }
  send_at_once(socket);
  Address address = make_address(ipv6, endpoint.address.c_str(), endpoint.port);
  if (::connect(socket.descriptor(), address.data(), address.size) != 0 && errno != EINPROGRESS) {
    problem = reason(errno);
    socket.close();
  }
  return socket;
}

std::string connection_problem(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? "" : reason(error);
}

std::string network_identity() {
  std::error_code unknown;
  return boot_id() + " " + std::filesystem::read_symlink("/proc/self/ns/net", unknown).string();
}

}  // namespace dtrain
