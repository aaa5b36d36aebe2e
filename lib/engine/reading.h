// Errors when reading samples during a run.
#pragma once

#include <exception>
#include <memory>
#include <new>

#include "base/error.h"
#include "data/loader/loader.h"

namespace dtrain {

/// Base of all exceptions that read_samples() throws. These exceptions mean that data could not be read, and
/// not that a device has failed. The samples were not used, so the parameters are those of the previous step.
class ReadError {
 public:
  virtual ~ReadError() = default;
};

/// An exception of read_samples(). `Base`: UserError if the user can correct the error, for example if a file
/// is malformed; otherwise Error.
template <class Base>
class ReadErrorOf final : public Base, public ReadError {
 public:
  using Base::Base;
};

/// Calls `read`. If `read` throws an exception, throws it again as a ReadErrorOf. Only std::bad_alloc is
/// rethrown unchanged.
template <class Read>
auto read_samples(Read&& read) try {
  return read();
} catch (const std::bad_alloc&) {
  throw;
} catch (const UserError& error) {
  throw ReadErrorOf<UserError>(error.what());
} catch (const std::exception& error) {
  throw ReadErrorOf<Error>(error.what());
}

inline std::shared_ptr<const Batch> read_next(Loader& loader) {
  return read_samples([&] { return loader.next(); });
}

}  // namespace dtrain
