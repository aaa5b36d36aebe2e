// Numbers too small for the normal float format cost a hundredfold on some CPUs; here they become zero.
#pragma once

namespace dtrain::cpu {

/// Makes the calling thread read and write denormal numbers as zero, and gives what restore_denormals takes.
unsigned flush_denormals();
/// Sets the calling thread back to what it was.
void restore_denormals(unsigned before);

}  // namespace dtrain::cpu
