// Errors with locations in the configuration. Callers recognize the type and do not add another location.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/diagnostics.h"

namespace dtrain {

/// One or more errors that are reported together. The message has one line for each error, which begins with
/// the location of the error if it is known.
class LocatedError : public UserError {
 public:
  LocatedError(const Mark& mark, const std::string& message);
  /// `errors` has at least one element.
  explicit LocatedError(std::vector<Diagnostics::Item> errors);

  const std::vector<Diagnostics::Item>& errors() const { return errors_; }
  /// Returns the same errors. Those without a location get the location `mark`.
  LocatedError with_default(const Mark& mark) const;

 private:
  std::vector<Diagnostics::Item> errors_;
};

/// Calls `work`. If it throws a UserError, the location is added to the message, unless the message already
/// has a location (LocatedError).
template <class Work>
auto with_location(const Mark& mark, Work work) {
  try {
    return work();
  } catch (const LocatedError& error) {
    throw error.with_default(mark);
  } catch (const UserError& error) {
    throw LocatedError(mark, error.what());
  }
}

/// Collects errors, to report them together.
class ErrorCollector {
 public:
  /// Calls `work`. If it throws a UserError, adds the error to the collection. `mark` is used as the
  /// location if the error has none; if `mark` has no file either, an enclosing with_location() may add the
  /// location.
  template <class Work>
  void attempt(const Mark& mark, Work work) {
    try {
      with_location(mark, work);
    } catch (const LocatedError& error) {
      add(error);
    }
  }
  bool empty() const { return errors_.empty(); }
  /// If there are errors, throws all of them as one LocatedError. They are sorted by location, and errors
  /// without a location come first. Repeated errors are left out.
  void throw_if_errors() const;

 private:
  void add(const LocatedError& error);

  std::vector<Diagnostics::Item> errors_;
};

}  // namespace dtrain
