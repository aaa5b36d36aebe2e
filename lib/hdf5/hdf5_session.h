// Shared basics for all code that calls libhdf5: the lock, silenced error output, RAII handles and errors as
// exceptions.
#pragma once

#include <mutex>
#include <string_view>
#include <utility>

#include <hdf5.h>

namespace dtrain {

/// Holds the process-wide lock on libhdf5, which most systems build without thread safety, and disables its
/// error output on this thread (the error stack and this setting are per thread). Every call of the library
/// needs a session.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::scoped_lock<std::mutex> lock_;
};

/// Returns true if libhdf5's error stack of the last failed call contains these words.
bool hdf5_said(std::string_view words);

/// Throws Error with the attempted action and libhdf5's innermost reason for the failure.
[[noreturn]] void throw_hdf5_error(std::string_view doing);

/// Returns the result of a libhdf5 call, or throws Error with the innermost reason if it is negative.
template <class Result>
Result checked(Result result, std::string_view doing) {
  if (result < 0) throw_hdf5_error(doing);
  return result;
}

/// Owns an identifier of any type (file, group, dataset, attribute, type, space, property list), or none.
/// Creating or destroying a handle needs a session.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  /// A negative identifier means none.
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  /// Throws Error, as checked() does, if the identifier is negative.
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
  /// Releases the identifier to the caller, who closes it and checks for errors.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace dtrain
