// Errors when reading samples during a run.
#pragma once

#include <exception>
#include <memory>
#include <new>

#include "base/error.h"
#include "data/loader/loader.h"

namespace dtrain {

/// Base of all exceptions of read_samples(). They mean that data could not be read, not that a device failed.
/// The samples were not used, and the parameters are those of the previous step.
class ReadError {
 public:
  virtual ~ReadError() = default;
};

/// `Base`: UserError if a file is malformed, else Error.
template <class Base>
class ReadErrorOf final : public Base, public ReadError {
 public:
  using Base::Base;
};

/// Calls `read`; adds ReadError to the type of its exceptions, except std::bad_alloc.
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
