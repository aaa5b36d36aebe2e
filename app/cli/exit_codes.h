// The exit codes of dtrain. A run ended by a signal returns 128 + the signal's number.
#pragma once

namespace dtrain {

/// kWrong: the configuration, the data or the command line is wrong (UserError); kFailed: any other failure.
inline constexpr int kDone = 0, kFailed = 1, kWrong = 2;

}  // namespace dtrain
