// Messages of expected errors.
#pragma once

#include <string>

#include "base/error.h"
#include "config/diagnostics.h"

namespace dtrain::test {

/// Returns the message of the UserError that `call` throws; "" if none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

/// Returns all errors and warnings as shown to users; "" if there are no errors.
inline std::string messages(const Diagnostics& diagnostics) {
  return error_of([&] { diagnostics.throw_if_errors(); });
}

}  // namespace dtrain::test
