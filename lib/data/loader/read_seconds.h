// Where the time goes in which samples are read.
#pragma once

namespace dtrain {

/// Seconds of one thread, or of several together.
struct ReadSeconds {
  double files = 0;     // reading what is stored
  double decoding = 0;  // pictures
  double rest = 0;      // transforms, augmentation, copying

  double total() const { return files + decoding + rest; }
  ReadSeconds& operator+=(const ReadSeconds& other) {
    files += other.files;
    decoding += other.decoding;
    rest += other.rest;
    return *this;
  }
};

/// The calling thread's, since it last set them to nothing. Readers add to files and decoding with a
/// Stopwatch, so that nobody between them and whoever asks for samples has to hand them on.
inline ReadSeconds& read_seconds_of_thread() {
  thread_local ReadSeconds seconds;
  return seconds;
}

}  // namespace dtrain
