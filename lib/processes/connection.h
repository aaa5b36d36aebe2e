// JSON messages over a socket that never blocks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "processes/socket.h"

namespace dtrain {

/// Sends and receives messages. A message consists of the length of its text (4 bytes, big-endian) and of its
/// text, a JSON document. To be used by one thread at a time.
class Connection {
 public:
  explicit Connection(Socket socket) : socket_(std::move(socket)) {}

  /// Adds a message to the output, which flush() writes. Drops a message of more than 1 MiB, and any message
  /// while too much output is waiting because the other side does not read.
  void send(const Json& message);
  /// Writes as much of the output as the socket accepts without blocking.
  void flush();
  /// Reads the bytes that have arrived, and appends the complete messages to `messages`. Returns false if no
  /// more messages can follow: the other side has closed the connection, the connection is broken, or
  /// something other than JSON has arrived.
  bool receive(std::vector<Json>& messages);
  /// Announces that no more messages follow. Messages that still arrive can be received.
  void finish_sending();
  void close() { socket_.close(); }
  /// Returns the reason why an attempt to connect has failed (connection_problem() in socket.h), or "" if the
  /// socket is connected.
  std::string problem() const { return connection_problem(socket_); }

  bool is_open() const { return socket_.is_open(); }
  int descriptor() const { return socket_.descriptor(); }
  bool has_output() const { return is_open() && !output_.empty(); }

 private:
  /// Removes the first complete message from the input. Throws UserError if it is malformed.
  std::optional<Json> next();

  Socket socket_;
  std::string input_, output_;
};

}  // namespace dtrain
