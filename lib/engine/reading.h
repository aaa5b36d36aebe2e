// Samples that cannot be read while a run is under way.
#pragma once

#include <exception>
#include <memory>
#include <new>

#include "base/error.h"
#include "data/loader/loader.h"

namespace dtrain {

/// A failure of the data, not of a device: nothing has been made of the samples, and the parameters are as
/// the step before left them. An Error whatever the reader threw, for the data was well when it was opened.
class ReadError : public Error {
 public:
  using Error::Error;
};

/// Calls what reads samples; what that throws becomes a ReadError.
template <class Read>
auto read_samples(Read&& read) try {
  return read();
} catch (const std::bad_alloc&) {
  throw;
} catch (const std::exception& error) {
  throw ReadError(error.what());
}

inline std::shared_ptr<const Batch> read_next(Loader& loader) {
  return read_samples([&] { return loader.next(); });
}

}  // namespace dtrain
