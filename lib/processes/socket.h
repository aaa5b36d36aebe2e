// TCP sockets that never block.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

/// A file descriptor that is closed when this object is destroyed.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

/// An IP address, as text, and a TCP port.
struct Endpoint {
  std::string address;  // "10.77.0.1", "fd00::2"
  uint16_t port = 0;
  /// Returns "10.77.0.1:4711" or "[fd00::2]:4711".
  std::string text() const;
};

/// Listens on all IPv4 or all IPv6 addresses. The system chooses the port, which is stored in `port`. Returns
/// a closed socket if this machine does not have this kind of address. Throws Error for other failures.
Socket listen_on_all(bool ipv6, uint16_t& port);
/// Accepts a waiting connection. Returns a closed socket if there is none.
Socket accept_from(const Socket& listener);
/// Starts to connect. If this fails at once, returns a closed socket and stores the reason in `problem`.
Socket start_to_connect(const Endpoint& endpoint, std::string& problem);
/// Returns the reason why an attempt to connect has failed, or "" if the socket is connected. Must be called
/// when the socket is ready for writing.
std::string connection_problem(const Socket& socket);

/// Returns a text that identifies the running system and the network namespace of this process. Two processes
/// can connect over loopback addresses if their texts are equal.
std::string network_identity();

}  // namespace dtrain
