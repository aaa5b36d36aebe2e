#include "base/error.h"

namespace dtrain {

namespace {

std::string without_nul(std::string message) {
  for (size_t at = 0; (at = message.find('\0', at)) != std::string::npos;) message.replace(at, 1, "\\x00");
  return message;
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(without_nul(message)) {}

}  // namespace dtrain
