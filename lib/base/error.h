// The two types of errors shown to users. The program's exit code follows from the type.
#pragma once

#include <stdexcept>
#include <string>

namespace dtrain {

/// A failure at run time (exit code 1): a full disk, a NaN loss, a lost device.
class Error : public std::runtime_error {
 public:
  /// what() is a C string, so a NUL would truncate it; NULs in the message become "\\x00".
  explicit Error(const std::string& message);
};

/// An error in the user's input (exit code 2): command line, configuration, a missing or malformed file.
class UserError : public Error {
 public:
  using Error::Error;
};

}  // namespace dtrain
