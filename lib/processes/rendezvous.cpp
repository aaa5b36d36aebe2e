#include "processes/rendezvous.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace dtrain {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error("the system call getrandom gave no random numbers");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

/// Returns whether a message has this type and this token.
bool is_from_run(const Json& message, std::string_view type, const std::string& token) {
  const Json *of = message.find("type"), *given = message.find("token");
  return of && given && of->is_string() && given->is_string() && of->as_string() == type &&
         given->as_string() == token;
}

Json greeting(std::string_view type, const std::string& token) {
  return Json::object().set("type", type).set("token", token);
}

/// A deadline for calls of poll().
class Deadline {
 public:
  explicit Deadline(Seconds limit)
      : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)) {}
  bool over() const { return Clock::now() >= end_; }
  /// Waits until a descriptor is ready, but not beyond the deadline, and at most 100 ms.
  void wait(std::vector<pollfd>& descriptors) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 100)));
  }

 private:
  Clock::time_point end_;
};

/// Returns the rank in a connection's first message if the message comes from this run, otherwise 0.
int rank_of(const std::vector<Json>& messages, const std::string& token, int size) {
  if (messages.empty() || !is_from_run(messages[0], "hello", token)) return 0;
  const Json* rank = messages[0].find("rank");
  return rank && rank->is_int() && rank->as_int() > 0 && rank->as_int() < size
             ? static_cast<int>(rank->as_int())
             : 0;
}

std::vector<Endpoint> endpoints_of(const Json& invitation) {
  std::vector<Endpoint> endpoints;
  const bool same_machine = invitation.at("machine").as_string() == network_identity();
  for (const Json& listener : invitation.at("listeners").items()) {
    const auto port = static_cast<uint16_t>(listener.at("port").as_int());
    if (same_machine) endpoints.push_back({listener.at("loopback").as_string(), port});
    for (const Json& address : listener.at("addresses").items())
      endpoints.push_back({address.as_string(), port});
  }
  return endpoints;
}

/// An attempt to connect to process 0 at one of its addresses.
struct Attempt {
  Endpoint endpoint;
  Connection connection;
  bool connected = false;
  std::string problem;

  void fail(std::string why) {
    problem = std::move(why);
    connection.close();
  }
  /// Sends the greeting and reads the answer, as far as possible without blocking. Returns true when process
  /// 0 has answered.
  bool advance(const std::string& token, int rank) {
    if (!connected) {
      Json hello = greeting("hello", token).set("rank", rank);
      connected = true;
      connection.send(hello);
    }
    connection.flush();
    std::vector<Json> messages;
    const bool open = connection.receive(messages);
    if (!messages.empty() && is_from_run(messages[0], "welcome", token)) return true;
    if (!open || !messages.empty()) fail("the program that answers is not process 0 of this run");
    return false;
  }
};

std::vector<Attempt> start_attempts(const std::vector<Endpoint>& endpoints) {
  std::vector<Attempt> attempts;
  for (const Endpoint& endpoint : endpoints) {
    std::string problem;
    Socket socket = start_to_connect(endpoint, problem);
    attempts.push_back({endpoint, Connection(std::move(socket)), false, problem});
  }
  return attempts;
}

std::string describe(const std::vector<Attempt>& attempts) {
  std::string text;
  for (const Attempt& attempt : attempts)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", attempt.endpoint.text(),
                        attempt.problem.empty() ? "no answer" : attempt.problem);
  return text.empty() ? "no addresses" : text;
}

}  // namespace

ControlListener::ControlListener() : token_(random_token()) {
  for (const bool ipv6 : {false, true}) {
    uint16_t port = 0;
    Socket socket = listen_on_all(ipv6, port);
    if (socket.is_open()) listeners_.push_back({std::move(socket), ipv6, port});
  }
  if (listeners_.empty())
    throw Error("cannot listen for other processes: this machine has neither IPv4 nor IPv6");
}

std::string ControlListener::invitation(const ChosenNetwork& network) const {
  const std::vector<InterfaceAddress> own = addresses_in(network, interface_addresses());
  Json listeners = Json::array();
  for (const Open& listener : listeners_) {
    Json addresses = Json::array();
    for (const InterfaceAddress& one : own)
      if (one.is_ipv6() == listener.ipv6) addresses.push(one.address);
    listeners.push(Json::object()
                       .set("port", static_cast<int>(listener.port))
                       .set("loopback", listener.ipv6 ? "::1" : "127.0.0.1")
                       .set("addresses", std::move(addresses)));
  }
  return Json::object()
      .set("token", token_)
      .set("machine", network_identity())
      .set("listeners", std::move(listeners))
      .dump();
}

std::vector<Connection> ControlListener::accept(int size, Seconds limit) {
  const Deadline deadline(limit);
  std::vector<Connection> ranks, unknown;
  for (int rank = 1; rank < size; ++rank) ranks.emplace_back(Socket());
  int missing = size - 1;
  while (missing > 0 && !deadline.over()) {
    std::vector<pollfd> descriptors;
    for (const Open& listener : listeners_) descriptors.push_back({listener.socket.descriptor(), POLLIN, 0});
    for (const Connection& one : unknown) descriptors.push_back({one.descriptor(), POLLIN, 0});
    deadline.wait(descriptors);
    for (const Open& listener : listeners_)
      for (Socket socket = accept_from(listener.socket); socket.is_open();
           socket = accept_from(listener.socket))
        unknown.emplace_back(std::move(socket));
    for (Connection& one : unknown) {
      std::vector<Json> messages;
      const bool open = one.receive(messages);
      if (const int rank = rank_of(messages, token_, size);
          rank > 0 && !ranks[static_cast<size_t>(rank - 1)].is_open()) {
        one.send(greeting("welcome", token_));
        one.flush();
        ranks[static_cast<size_t>(rank - 1)] = std::exchange(one, Connection(Socket()));
        --missing;
      } else if (!open || !messages.empty()) {
        one.close();
      }
    }
    std::erase_if(unknown, [](const Connection& one) { return !one.is_open(); });
  }
  return ranks;
}

Connection connect_to_listener(const std::string& invitation, int rank, Seconds limit, std::string& problem) {
  const Json json = Json::parse(invitation);
  const std::string token = json.at("token").as_string();
  const Deadline deadline(limit);
  std::vector<Attempt> attempts = start_attempts(endpoints_of(json));
  const auto running = [](const Attempt& attempt) { return attempt.connection.is_open(); };
  while (!deadline.over() && std::any_of(attempts.begin(), attempts.end(), running)) {
    std::vector<pollfd> descriptors;
    std::vector<Attempt*> waiting;
    for (Attempt& attempt : attempts) {
      if (!running(attempt)) continue;
      descriptors.push_back(
          {attempt.connection.descriptor(), static_cast<short>(attempt.connected ? POLLIN : POLLOUT), 0});
      waiting.push_back(&attempt);
    }
    deadline.wait(descriptors);
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (descriptors[i].revents == 0) continue;
      Attempt& attempt = *waiting[i];
      std::string refused = attempt.connected ? "" : attempt.connection.problem();
      if (!refused.empty()) {
        attempt.fail(std::move(refused));
      } else if (attempt.advance(token, rank)) {
        return std::move(attempt.connection);
      }
    }
  }
  problem = describe(attempts);
  return Connection(Socket());
}

}  // namespace dtrain
