// Errors when reading samples during a run.
#pragma once

#include <exception>
#include <memory>
#include <new>

#include "base/error.h"
#include "data/loader/loader.h"

namespace dtrain {

/// Reading data failed, as opposed to a device: the samples were not used, and the parameters are those of
/// the previous step. Replaces any exception type of the reader, because the data was valid when it was
/// opened.
class ReadError : public Error {
 public:
  using Error::Error;
};

/// Calls `read`; converts its exceptions to ReadError, except std::bad_alloc.
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
