// Measures how the time for reading samples is spent.
#pragma once

namespace dtrain {

/// Seconds spent by one thread, or by several together.
struct ReadSeconds {
  double files = 0;     // seconds for reading stored data
  double decoding = 0;  // seconds for decoding images
  double rest = 0;      // seconds for transforms, augmentation and copying

  double total() const { return files + decoding + rest; }
  ReadSeconds& operator+=(const ReadSeconds& other) {
    files += other.files;
    decoding += other.decoding;
    rest += other.rest;
    return *this;
  }
};

/// Returns the calling thread's times since it last reset them. Readers add to `files` and `decoding` with a
/// Stopwatch, so the code between them and the caller need not pass the times on.
inline ReadSeconds& read_seconds_of_thread() {
  thread_local ReadSeconds seconds;
  return seconds;
}

}  // namespace dtrain
