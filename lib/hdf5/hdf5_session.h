// Common functions for all code that calls libhdf5: a lock, RAII handles, and exceptions instead of printed
// errors.
#pragma once

#include <mutex>
#include <string_view>
#include <utility>

#include <hdf5.h>

namespace dtrain {

/// Holds the lock on libhdf5. The lock is for the whole process because libhdf5 is built without thread
/// safety on most systems. A session also disables the error output of libhdf5 on this thread, because this
/// setting and the error stack exist once per thread. All calls of libhdf5 need a session.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::scoped_lock<std::mutex> lock_;
};

/// Returns true if `words` occur in the error stack of the last failed call of libhdf5.
bool hdf5_said(std::string_view words);

/// Throws Error. The message contains the action that failed (`doing`) and the innermost reason in libhdf5's
/// error stack.
[[noreturn]] void throw_hdf5_error(std::string_view doing);

/// Returns the result of a libhdf5 call. If the result is negative, throws Error with the innermost reason.
template <class Result>
Result checked(Result result, std::string_view doing) {
  if (result < 0) throw_hdf5_error(doing);
  return result;
}

/// Owns an HDF5 identifier of any kind (file, group, dataset, attribute, type, space or property list). A
/// handle may also own no identifier. Creating or destroying a handle needs a session.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  /// If `id` is negative, the handle owns no identifier.
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  /// Throws Error if the identifier is negative, like checked().
  Hdf5Handle(hid_t id, std::string_view doing) : id_(checked(id, doing)) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(other.release()) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// Passes the ownership of the identifier to the caller. The caller closes it and can then check for
  /// errors.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace dtrain
