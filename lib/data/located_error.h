// Errors whose messages begin with a location in the configuration. The type tells callers not to add another
// location.
#pragma once

#include "base/error.h"
#include "config/diagnostics.h"

namespace dtrain {

/// A UserError whose message begins with its location.
class LocatedError : public UserError {
 public:
  using UserError::UserError;
};

/// Calls `work`. If it throws a UserError, the location is added to the message, unless the message already
/// has a location (LocatedError).
template <class Work>
auto with_location(const Mark& mark, Work work) {
  try {
    return work();
  } catch (const LocatedError&) {
    throw;
  } catch (const UserError& error) {
    throw LocatedError(located(mark, error.what()));
  }
}

}  // namespace dtrain
