// Flush-to-zero mode for denormal numbers. On some CPUs, computing with denormal numbers is a hundred times
// slower.
#pragma once

namespace dtrain::cpu {

/// Makes the calling thread treat denormal operands and results as zero. Returns the previous mode, for
/// restore_denormals().
unsigned flush_denormals();
/// Restores the mode that flush_denormals() returned.
void restore_denormals(unsigned before);

}  // namespace dtrain::cpu
