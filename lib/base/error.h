// The two kinds of failure a person can meet. The program's exit code follows from the type.
#pragma once

#include <stdexcept>
#include <string>

namespace dtrain {

/// Something failed while running (exit code 1): a full disk, a loss that is not a number, a lost device.
class Error : public std::runtime_error {
 public:
  /// what() is a C string: a NUL in the message would end it, and becomes "\\x00".
  explicit Error(const std::string& message);
};

/// What the user wrote or named is wrong (exit code 2): command line, configuration, a missing or malformed
/// file.
class UserError : public Error {
 public:
  using Error::Error;
};

}  // namespace dtrain
