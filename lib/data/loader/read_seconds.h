// Measures how the time for reading samples is spent.
#pragma once

namespace dtrain {

/// Seconds spent by one thread, or the sum over several threads.
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

/// Returns the times of the calling thread since it last reset them. Readers add their times to `files` and
/// `decoding` directly, with a Stopwatch. The times therefore need not be passed through the functions
/// between the readers and the Prefetcher.
inline ReadSeconds& read_seconds_of_thread() {
  thread_local ReadSeconds seconds;
  return seconds;
}

}  // namespace dtrain
