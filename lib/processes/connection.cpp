#include "processes/connection.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>

#include "base/error.h"

namespace dtrain {

namespace {

constexpr size_t kHeader = 4, kMostBytes = size_t{1} << 20, kMostWaiting = size_t{8} << 20;

}  // namespace

void Connection::send(const Json& message) {
  if (!is_open() || output_.size() > kMostWaiting) return;
  const std::string text = message.dump();
  if (text.size() > kMostBytes) return;
  for (int shift = 24; shift >= 0; shift -= 8) output_ += static_cast<char>(text.size() >> shift & 0xff);
  output_ += text;
}

void Connection::flush() {
  while (has_output()) {
    const ssize_t n = ::send(socket_.descriptor(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
      output_.clear();  // receive() reports the broken connection
    if (n <= 0) return;
    output_.erase(0, static_cast<size_t>(n));
  }
}

bool Connection::receive(std::vector<Json>& messages) {
  bool open = is_open();
  while (open) {
    std::array<char, 65536> bytes;
    const ssize_t n = ::recv(socket_.descriptor(), bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      open = false;
    } else {
      input_.append(bytes.data(), static_cast<size_t>(n));
      if (input_.size() > kMostWaiting) break;
    }
  }
  try {
    while (auto message = next()) messages.push_back(std::move(*message));
  } catch (const UserError&) {
    return false;
  }
  return open;
}

void Connection::finish_sending() {
  if (is_open()) ::shutdown(socket_.descriptor(), SHUT_WR);
}

std::optional<Json> Connection::next() {
  if (input_.size() < kHeader) return std::nullopt;
  size_t size = 0;
  for (size_t i = 0; i < kHeader; ++i) size = size << 8 | static_cast<unsigned char>(input_[i]);
  if (size > kMostBytes) throw UserError("a message from another process is too long");
  if (input_.size() < kHeader + size) return std::nullopt;
  Json message = Json::parse(std::string_view(input_).substr(kHeader, size));
  input_.erase(0, kHeader + size);
  return message;
}

}  // namespace dtrain
