// Errors whose messages begin with a location in the configuration, so that callers do not add a second one.
#pragma once

#include "base/error.h"
#include "config/diagnostics.h"

namespace dtrain {

/// A UserError whose message begins with its location.
class LocatedError : public UserError {
 public:
  using UserError::UserError;
};

/// Calls `work`. Adds the location to its UserErrors, unless they have one.
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
