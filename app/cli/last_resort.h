// How the process ends where memory has run out.
#pragma once

namespace dtrain {

/// Where something large could not be had, std::bad_alloc goes the way of all exceptions. Where an exception
/// may not pass (a destructor, a library's thread), the process ends with a sentence and exit code 1, not by
/// a signal. Whatever else terminates the program still aborts.
///
/// Where not even something small can be had, the process ends like that at once (last_resort.cpp has a
/// malloc for it): nothing sensible could be done any more, and the libraries that dtrain uses crash, or exit
/// without a word. What was saved is on the disk, whole.
void install_last_resort();

}  // namespace dtrain
