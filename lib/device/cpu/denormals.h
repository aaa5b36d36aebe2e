// Flush-to-zero mode for denormal numbers, which slow down some CPUs a hundredfold.
#pragma once

namespace dtrain::cpu {

/// Makes the calling thread treat denormal numbers as zero, in operands and results. Returns the previous
/// mode, for restore_denormals().
unsigned flush_denormals();
/// Restores the mode that flush_denormals() returned.
void restore_denormals(unsigned before);

}  // namespace dtrain::cpu
